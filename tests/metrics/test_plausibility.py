from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, jaccard_score

from heedful.errors import BadInput, Unsupported
from heedful.explainers.random import Random
from heedful.family import build
from heedful.metrics import measure
from heedful.metrics.plausibility import Auprc, Iou, TokenF1
from tests.metrics.linear import Truth, evaluations

METRICS = [TokenF1, Iou, Auprc]
TRIAL = evaluations(Truth())[0]
N_UNITS = len(TRIAL.scores)


def judged(scores, marks):
    """The first evaluation with other scores, and other marks."""
    explanation = replace(TRIAL.explanation, scores=np.array(scores, dtype=np.float64))
    return replace(TRIAL, explanation=explanation, rationale=np.array(marks, dtype=bool))


MARKS = st.lists(st.booleans(), min_size=N_UNITS, max_size=N_UNITS).filter(lambda marks: 0 < sum(marks) < N_UNITS)
SCORES = st.lists(st.integers(-4, 4), min_size=N_UNITS, max_size=N_UNITS)
DISTINCT = st.permutations(range(1, N_UNITS + 1)).map(lambda sizes: [size * (-1) ** size for size in sizes])


@given(DISTINCT, MARKS)
def test_f1_and_iou_of_as_many_as_are_marked_are_those_of_scikit_learn(scores, marks):
    named = np.zeros(N_UNITS, dtype=bool)
    named[np.argsort(-np.abs(scores))[: sum(marks)]] = True
    assert measure(TokenF1(), judged(scores, marks)) == pytest.approx(f1_score(marks, named), abs=1e-12)
    assert measure(Iou(), judged(scores, marks)) == pytest.approx(jaccard_score(marks, named), abs=1e-12)


@given(DISTINCT, MARKS, st.integers(1, N_UNITS + 5))
def test_f1_and_iou_of_a_given_number_are_those_of_scikit_learn(scores, marks, n_strongest):
    named = np.abs(scores) > N_UNITS - n_strongest
    assert measure(TokenF1(n_strongest), judged(scores, marks)) == pytest.approx(f1_score(marks, named), abs=1e-12)
    assert measure(Iou(n_strongest), judged(scores, marks)) == pytest.approx(jaccard_score(marks, named), abs=1e-12)


@given(SCORES, MARKS)
def test_average_precision_is_that_of_scikit_learn_among_equals_too(scores, marks):
    truth = average_precision_score(marks, np.abs(scores))
    assert measure(Auprc(), judged(scores, marks)) == pytest.approx(truth, abs=1e-12)


@given(SCORES, MARKS)
def test_iou_follows_from_f1_as_the_docstring_says(scores, marks):
    f1 = measure(TokenF1(), judged(scores, marks))
    assert measure(Iou(), judged(scores, marks)) == pytest.approx(f1 / (2 - f1), abs=1e-12)


@pytest.mark.parametrize("member", METRICS)
@given(SCORES, MARKS)
def test_a_sign_changes_nothing(member, scores, marks):
    assert measure(member(), judged(scores, marks)) == measure(member(), judged(np.abs(scores), marks))


def test_ties_are_broken_at_random_and_not_in_reading_order():
    marks = np.arange(N_UNITS) < N_UNITS // 2
    value = [measure(TokenF1(), replace(evaluation, rationale=marks)) for evaluation in map(flat, evaluations(Truth()))]
    assert np.mean(value) == pytest.approx(0.5, abs=0.1)
    assert measure(Auprc(), judged(np.ones(N_UNITS), marks)) == 0.5


def flat(evaluation):
    return replace(evaluation, explanation=replace(evaluation.explanation, scores=np.ones(N_UNITS)))


@pytest.mark.parametrize("member", METRICS)
def test_true_scores_reach_one_and_random_scores_the_share_marked(member):
    assert [measure(member(), evaluation) for evaluation in evaluations(Truth())] == [1.0] * 30
    by_chance = [measure(member(), evaluation) for evaluation in evaluations(Random())]
    # 5 of 20 words are marked; F1 of a random choice is 1/4 in the mean, IoU less, average precision a little more.
    low, high = {"token-f1": (0.15, 0.35), "iou": (0.08, 0.25), "auprc": (0.25, 0.5)}[member.name]
    assert low < np.mean(by_chance) < high


@pytest.mark.parametrize("member", METRICS)
def test_what_nobody_marked_cannot_be_measured(member):
    with pytest.raises(Unsupported, match=f"{member.name}: this text has no human rationale"):
        measure(member(), replace(TRIAL, rationale=None))


@pytest.mark.parametrize("member", METRICS)
@pytest.mark.parametrize(("mark", "which"), [(True, "every"), (False, "no")])
def test_a_text_that_is_marked_completely_or_not_at_all_is_refused(member, mark, which):
    with pytest.raises(BadInput, match=f"People marked {which} unit of this text"):
        measure(member(), judged(np.arange(N_UNITS), [mark] * N_UNITS))


@pytest.mark.parametrize("member", METRICS)
def test_marks_on_other_units_than_the_scores_are_refused(member):
    with pytest.raises(BadInput, match=f"The rationale has 3 units and the scores {N_UNITS}"):
        measure(member(), replace(TRIAL, gold=None, rationale=np.array([True, False, True])))


@pytest.mark.parametrize("member", [TokenF1, Iou])
def test_the_number_of_named_units_is_a_setting(member):
    assert build(member, member.name, {"n_strongest": "3"}) == member(3)
    assert build(member, member.name, {"n_strongest": "marked"}) == member()
    with pytest.raises(BadInput, match="needs n_strongest ≥ 1; 0 was given"):
        measure(member(0), TRIAL)
