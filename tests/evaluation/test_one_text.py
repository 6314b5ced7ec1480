from dataclasses import replace

import pytest

import heedful
from heedful.evaluation.one_text import Measurement, measure_text, word_key
from heedful.evaluation.sample import draw
from heedful.explainers.leave_one_out import LeaveOneOut
from heedful.explainers.random import Random
from heedful.metrics.compactness import Gini
from heedful.metrics.plausibility import Iou
from heedful.models.budget import Budget
from heedful.models.question import Wanted


def measurement(model, **changes):
    explainers = {"loo": LeaveOneOut(), "random": Random()}
    shared = {"others": {}, "unit": "word", "gold": None, "twin": None}
    return Measurement(model, Wanted(), Budget(), explainers, [Gini(), Iou()], **{**shared, **changes})


def test_every_method_has_a_value_or_a_reason_for_every_metric(tiny):
    sample = draw(["good film , not dull", "bad story"], None, "test", 0)
    result = measure_text(measurement(tiny), sample, 0)
    assert result.skipped is None
    assert set(result.values) == {"loo", "random"}
    assert set(result.values["loo"]) == {"gini"}
    assert "no human rationale" in result.reasons["loo"]["iou"].sentence
    assert result.reasons["loo"]["iou"].subject == "iou"
    assert result.agreement["loo"]["loo"] == pytest.approx(1.0)
    assert result.agreement["loo"]["random"] == result.agreement["random"]["loo"]


def test_a_text_that_cannot_be_explained_is_skipped_with_a_reason(tiny):
    sample = draw(["", "bad story"], None, "test", 0)
    assert measure_text(measurement(tiny), sample, 0).skipped


def test_an_explanation_with_too_few_scores_is_refused_for_their_number(tiny):
    text = "good film , not dull"
    whole = heedful.explain(tiny, text, "random")
    short = replace(heedful.explain(tiny, "good film", "random"), target=whole.target)
    read_in = {("theirs", text): (short,)}
    result = measure_text(measurement(tiny, others=read_in), draw([text, "bad"], None, "test", 0), 0)
    expected = "The imported explanation has 2 scores; the text has 5 words."
    assert result.reasons["theirs"][""].sentence == expected


def test_words_are_compared_without_case_and_spaces():
    assert word_key(" Good ") == word_key("good")
