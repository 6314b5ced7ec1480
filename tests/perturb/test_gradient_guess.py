"""Gradients between baseline and text against finite differences of the model."""

import numpy as np
import pytest
import torch

import heedful
from heedful.models.question import ask
from heedful.perturb.gradient_guess import N_SLOPES, interior_slopes
from tests.families import build

TEXT = "a very good film , but not dull"


@pytest.mark.parametrize("family", ["bert", "paper"])
def test_gradients_equal_finite_differences_along_each_word(family, tiny):
    model = tiny if family == "paper" else build(family)
    question = ask(model, [TEXT], 1)
    e, b = question.embedded(0), question.baseline(0, "unknown")
    unit_of, d = question.documents[0].unit_of("word"), question.documents[0].n_units("word")

    def f(point):
        return float(question.slopes([0], point)[0][0])

    rows = []
    for alpha in (np.arange(N_SLOPES) + 0.5) / N_SLOPES:
        differences = []
        for word in range(d):
            step = torch.zeros_like(e)
            tokens = np.flatnonzero(unit_of == word)
            step[:, tokens] = 1e-5 * (e - b)[:, tokens]
            point = b + alpha * (e - b)
            differences.append((f(point + step) - f(point - step)) / 2e-5)
        rows.append(differences)
    expected = np.array(rows).reshape(3, 2, d).mean(axis=1)
    assert np.allclose(interior_slopes(question, 0, "word"), expected, atol=1e-5 * np.abs(expected).max())


def test_a_function_has_no_gradients():
    model = heedful.wrap(lambda texts: [[len(text)] for text in texts])
    assert interior_slopes(ask(model, [TEXT], 0), 0, "word") is None
