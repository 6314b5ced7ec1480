"""Theorem 5.1 against the formula in slow loops and against the limit it approximates, by all subsets."""

from itertools import combinations

import numpy as np
import pytest
import torch

import heedful
from benchmarks.straightforward import Straightforward
from tests.conftest import tiny_model

TEXT = "good film , not dull story !"


def in_loops(model, text, label):
    plain = Straightforward(model)
    numbers = plain.ids(text)
    T = plain.T_max
    with torch.no_grad():
        e = plain.embedding(torch.tensor(numbers)) + plain.positions
        h = plain.embedding(torch.tensor([0] + [1] * (T - 1))) + plain.positions
        scores = np.zeros(T)
        for head in plain.heads:
            q = head.query(e[0])
            g = [float(torch.exp(q @ head.key(e[t]) / 6**0.5)) for t in range(T)]
            g_h = [float(torch.exp(q @ head.key(h[t]) / 6**0.5)) for t in range(T)]
            for t in range(T):
                w, w_h = (float(head.last.weight[label] @ head.value(x[t])) for x in (e, h))
                scores[t] += g[t] / sum(g) * w - g_h[t] / sum(g_h) * w_h
    return 1.5 * scores / len(plain.heads)


def limit_by_all_subsets(model, text, label):
    """Eq. (17): 3 E[f | j kept] − 3/d Σ_k E[f | k kept], sizes uniform on 1 … d."""
    words = text.split()
    d = len(words)
    kept_mean = np.zeros(d)
    plain = Straightforward(model)
    for j in range(d):
        by_size = []
        for s in range(1, d):
            subsets = list(combinations([k for k in range(d) if k != j], s))
            texts = [" ".join("neverseen" if k in gone else word for k, word in enumerate(words)) for gone in subsets]
            # j is kept with probability (d − s)/d among sets of size s, and all sizes are equally likely.
            by_size.append(((d - s) / d, plain.predict(texts)[:, label].mean()))
        weights = np.array([weight for weight, _ in by_size])
        kept_mean[j] = weights @ [value for _, value in by_size] / weights.sum()
    return 3 * kept_mean - 3 * kept_mean.mean()


def test_the_explainer_is_equation_19(tiny):
    tokens = heedful.explain(tiny, TEXT, "lime-theorem", target=1, unit="token")
    assert np.allclose(tokens.scores, in_loops(tiny, TEXT, 1)[1:8], atol=1e-12)


def test_a_word_s_coefficient_sums_over_its_occurrences(tiny):
    text = "good film good story good"
    types = heedful.explain(tiny, text, "lime-theorem", target=1, unit="type")
    assert types.scores[0] == pytest.approx(in_loops(tiny, text, 1)[[1, 3, 5]].sum(), abs=1e-12)


def test_the_remainder_shrinks_as_the_window_grows():
    errors = []
    for T_max in (16, 64, 256):
        model = tiny_model(T_max=T_max)
        limit = limit_by_all_subsets(model, TEXT, 1)
        theorem = heedful.explain(model, TEXT, "lime-theorem", target=1).scores
        errors.append(np.linalg.norm(theorem - limit) / np.linalg.norm(limit))
    assert errors[2] < errors[1] < errors[0]


def test_it_claims_no_interval(tiny):
    assert heedful.explain(tiny, TEXT, "lime-theorem").error is None
