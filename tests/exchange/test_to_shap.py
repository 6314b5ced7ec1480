"""Explanations as shap's own: its arithmetic and its plots work on them."""

import re
import sys
import warnings

import numpy as np
import pytest

import heedful
from heedful.errors import MissingPackage
from heedful.exchange.to_shap import base_value
from tests.explanations.many import explained

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


def test_the_matrix_of_many_texts_sums_to_the_outputs_and_counts_words():
    explanations = explained(target=1)
    matrix = explanations.to_shap()
    assert matrix.shape == (7, len(matrix.feature_names))
    assert np.allclose(matrix.base_values + matrix.values.sum(axis=1), [item.output for item in explanations[:-1]])
    good = matrix.feature_names.index("good")
    assert matrix.data[0, good] == 2
    assert matrix.values[0, good] == pytest.approx(explanations[0].scores[[3, 6]].sum())
    assert (matrix.values[matrix.data == 0] == 0).all()
    for _, column in zip(matrix.feature_names, matrix.data.T, strict=True):
        assert column.any()


def test_one_target_of_several_is_chosen():
    explanations = explained()
    chosen = explanations.to_shap(target="positive")
    outputs = [item.output for item in explanations[:-1] if item.target.name == "positive"]
    assert np.allclose(chosen.base_values + chosen.values.sum(axis=1), outputs)


def test_shap_draws_the_texts_of_different_lengths():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    explanations = explained(target=1)
    words = explanations.to_shap()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for draw, drawn in ((shap.plots.beeswarm, words), (shap.plots.bar, words), (shap.plots.bar, words.mean(0))):
            draw(drawn, show=False)
            labels = {label.get_text() for label in pyplot.gca().get_yticklabels()}
            assert any("good" in label for label in labels)
            pyplot.close("all")
    assert [base_value(item) for item in explanations[:-1]] == pytest.approx(words.base_values)


def test_shap_draws_its_text_plot_in_colour_as_the_docs_say(paper):
    given = heedful.explain(paper, TEXT, "leave-one-out").to_shap()
    with np.printoptions(legacy="1.25"):
        html = shap.plots.text(given, display=False)
    colours = re.findall(r"background: (rgba\([^;]*);", html)
    assert len(colours) >= len(given.values)
    assert all(re.fullmatch(r"rgba\([\d., ]+\)", colour) for colour in colours)
