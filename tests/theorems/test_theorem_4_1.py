"""Theorem 4.1 as an explainer; `tests/theory/test_gradient.py` compares its formula with autograd."""

import numpy as np
import pytest

import heedful


@pytest.mark.parametrize(
    ("reduce", "method"),
    [("mean", "gradient-mean"), ("l1", "gradient-l1"), ("l2", "gradient-l2"), ("x-input", "gradient-x-input")],
)
def test_the_explainer_equals_the_gradient_explainers(tiny, reduce, method):
    text = "good film , good story"
    by_theorem = heedful.explain(tiny, text, "gradient-theorem", reduce=reduce)
    by_backward = heedful.explain(tiny, text, method)
    assert np.abs(by_theorem.scores - by_backward.scores).max() < 1e-9
    assert by_theorem.signed == by_backward.signed
    assert by_theorem.facts["[cls]"] == pytest.approx(by_backward.facts["[cls]"], abs=1e-9)
    assert by_theorem.facts["padding"] == pytest.approx(by_backward.facts["padding"], abs=1e-9)


def test_the_query_term_changes_cls_alone(tiny):
    moves, fixed = (heedful.explain(tiny, "good film", "gradient-theorem", query=q) for q in ("moves", "fixed"))
    assert np.array_equal(moves.scores, fixed.scores)
    assert moves.facts["[cls]"] != fixed.facts["[cls]"]
