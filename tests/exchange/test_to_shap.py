"""Explanations as shap's own: its arithmetic and its plots work on them."""

import sys

import numpy as np
import pytest

import heedful
from heedful.errors import MissingPackage

shap = pytest.importorskip("shap", reason="needs shap")
TEXT = "a fine film , but too long"


def test_base_and_values_sum_to_the_output_and_the_words_to_the_text(paper):
    explanation = heedful.explain(paper, TEXT, "shapley-exact")
    given = explanation.to_shap()
    assert given.base_values + given.values.sum() == pytest.approx(explanation.output)
    assert "".join(given.data) == TEXT
    assert given.feature_names == list(explanation.units)
    assert given.output_names == str(explanation.target)


def test_intervals_are_the_bounds(paper):
    explanation = heedful.explain(paper, TEXT, "lime", n_samples=100)
    given = explanation.to_shap()
    assert np.allclose(given.upper_bounds - given.lower_bounds, 2 * explanation.error)
    assert (given.lower_bounds <= given.values).all()


def test_what_is_read_back_is_what_was_given(paper):
    explanation = heedful.explain(paper, TEXT, "leave-one-out")
    read = heedful.read(paper, TEXT, explanation.to_shap())
    assert np.allclose(read.scores, explanation.scores)


def test_without_shap_the_error_says_what_to_install(paper, monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingPackage, match="pip install shap"):
        heedful.explain(paper, TEXT, "leave-one-out").to_shap()
