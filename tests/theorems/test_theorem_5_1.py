"""Theorem 5.1 against the formula in slow loops and against the limit it approximates, by all subsets."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch

import heedful
from tests.conftest import tiny_model
from tests.straightforward import Straightforward

TEXT = "good film , not dull story !"
CLS = ("kept", "replaced")


def in_loops(model, text, label, first=0):
    plain = Straightforward(model)
    numbers = plain.ids(text)
    T = plain.T_max
    with torch.no_grad():
        e = plain.embedding(torch.tensor(numbers)) + plain.positions
        h = plain.embedding(torch.tensor([first] + [1] * (T - 1))) + plain.positions
        scores = np.zeros(T)
        for head in plain.heads:
            q = head.query(e[0])
            g = [float(torch.exp(q @ head.key(e[t]) / 6**0.5)) for t in range(T)]
            g_h = [float(torch.exp(q @ head.key(h[t]) / 6**0.5)) for t in range(T)]
            for t in range(T):
                w, w_h = (float(head.last.weight[label] @ head.value(x[t])) for x in (e, h))
                scores[t] += g[t] / sum(g) * w - g_h[t] / sum(g_h) * w_h
    return 1.5 * scores / len(plain.heads)


def lime_by_all_subsets(model, text, label):
    """LIME's line through all sets of removed words, sizes equally likely, no kernel, no ridge; and Eq. (17)."""
    words = text.split()
    d = len(words)
    keep = np.array([[k not in gone for k in range(d)] for s in range(1, d + 1) for gone in combinations(range(d), s)])
    sizes = d - keep.sum(axis=1)
    weights = np.array([1 / d / comb(d, int(s)) for s in sizes])
    texts = [" ".join(np.where(row, words, "neverseen")) for row in keep]
    f = Straightforward(model).predict(texts)[:, label]
    design = np.column_stack([np.ones(len(keep)), keep])
    line = np.linalg.solve(design.T @ (design * weights[:, None]), design.T @ (weights * f))
    given_kept = np.array([np.average(f[keep[:, j]], weights=weights[keep[:, j]]) for j in range(d)])
    return line[1:], 3 * given_kept - 3 * given_kept.mean()


def test_the_explainer_is_equation_19(tiny):
    tokens = heedful.explain(tiny, TEXT, "lime-theorem", target=1, unit="token")
    assert np.allclose(tokens.scores, in_loops(tiny, TEXT, 1)[1:8], atol=1e-12)


def test_with_cls_replaced_alpha_h_is_that_of_unknown_words_everywhere(tiny):
    kept, printed = (heedful.explain(tiny, TEXT, "lime-theorem", target=1, unit="token", cls=cls).scores for cls in CLS)
    assert np.allclose(printed, in_loops(tiny, TEXT, 1, first=1)[1:8], atol=1e-12)
    assert np.abs(printed - kept).max() > 1e-4


def test_a_word_s_coefficient_sums_over_its_occurrences(tiny):
    text = "good film good story good"
    types = heedful.explain(tiny, text, "lime-theorem", target=1, unit="type")
    assert types.scores[0] == pytest.approx(in_loops(tiny, text, 1)[[1, 3, 5]].sum(), abs=1e-12)


def test_with_uniform_attention_the_printed_form_is_three_halves_of_lime_and_the_corrected_one_is_lime():
    for T_max in (16, 64):
        model = tiny_model(T_max=T_max, bias=False)
        with torch.no_grad():
            model.network.W_k.zero_()
        lime, _ = lime_by_all_subsets(model, TEXT, 1)
        printed, corrected = (
            heedful.explain(model, TEXT, "lime-theorem", target=1, form=form).scores
            for form in ("printed", "corrected")
        )
        assert np.allclose(corrected, lime, atol=1e-9)
        assert np.allclose(printed, 1.5 * lime, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_as_the_window_grows_the_corrected_form_becomes_lime_and_the_printed_one_does_not(seed):
    errors = {"printed": [], "corrected": []}
    for T_max in (16, 256):
        model = tiny_model(seed=seed, T_max=T_max)
        with torch.no_grad():
            # Bounded attention scores, as the theorem assumes.
            model.network.W_k.mul_(0.1)
        lime, _ = lime_by_all_subsets(model, TEXT, 1)
        for form, result in errors.items():
            scores = heedful.explain(model, TEXT, "lime-theorem", target=1, form=form).scores
            result.append(np.linalg.norm(scores - lime) / np.linalg.norm(lime))
    assert errors["corrected"][1] < 0.02
    assert errors["corrected"][1] < errors["corrected"][0] / 5
    assert errors["printed"][1] > 0.3


def test_a_constant_added_to_f_changes_neither_lime_nor_the_corrected_form():
    before, after = tiny_model(bias=True), tiny_model(bias=True)
    with torch.no_grad():
        for head in range(3):
            after.network.b_v[head] += torch.linalg.pinv(after.network.W_l[head]) @ torch.ones(3, dtype=torch.float64)
    assert np.allclose(after([TEXT]), before([TEXT]) + 1)
    moved = {
        form: np.abs(
            heedful.explain(after, TEXT, "lime-theorem", target=1, form=form).scores
            - heedful.explain(before, TEXT, "lime-theorem", target=1, form=form).scores
        ).max()
        for form in ("printed", "corrected")
    }
    assert moved["corrected"] < 1e-10
    assert moved["printed"] > 0.01


def test_equation_17_is_the_centred_part_of_lime_up_to_a_factor():
    """On a line of slopes c, Eq. (17) gives (d+1)/(d−1) (c_j − mean of c): it loses the mean."""
    model = tiny_model(bias=False)
    with torch.no_grad():
        model.network.W_k.zero_()
    lime, equation_17 = lime_by_all_subsets(model, TEXT, 1)
    d = len(lime)
    assert np.allclose(equation_17, (d + 1) / (d - 1) * (lime - lime.mean()), atol=1e-9)
    assert abs(lime.mean()) > 1e-3


def test_it_claims_no_interval(tiny):
    assert heedful.explain(tiny, TEXT, "lime-theorem").error is None
