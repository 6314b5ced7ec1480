"""Laws that bind every metric."""

import inspect
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import heedful
from heedful.errors import HeedfulError, Unsupported
from heedful.explainers.leave_one_out import LeaveOneOut
from heedful.explainers.random import Random
from heedful.metrics import Evaluation, Metric, measure
from heedful.models.question import ask
from heedful.perturb.document_values import DocumentValues
from heedful.statistics.intervals import mean_intervals
from heedful.statistics.significance import means
from tests.metrics.linear import FewAtRandom, Noisy, Truth, evaluations

NAMES = sorted(heedful.metrics())
ASKED = {"truth": Truth(), "noisy": Noisy(), "leave-one-out": LeaveOneOut(), "random": Random()}
CONTROLS = {"sensitivity": FewAtRandom()}
"""The axiom asks for scores that are not zero, which random numbers are: its null names a few words at random."""


@cache
def evaluations_of(name: str) -> list[Evaluation]:
    return evaluations({**ASKED, **CONTROLS}[name])


@cache
def values_of(metric: str, name: str) -> tuple[float, ...]:
    member = heedful.metrics()[metric]()
    return tuple(measure(member, evaluation) for evaluation in evaluations_of(name))


@pytest.mark.parametrize("metric", NAMES)
def test_the_true_scores_are_best_and_the_control_is_worst(metric):
    """On a linear bag of words with known weights, with intervals over documents that do not overlap."""
    up = 1 if heedful.metrics()[metric].better == "higher" else -1
    names = [*ASKED, *({metric} & set(CONTROLS))]
    values = up * np.array([values_of(metric, name) for name in names])
    mean = means(values)
    low, high = (np.where(np.isnan(side), mean, side) for side in mean_intervals(values))
    truth, control = 0, len(names) - 1
    assert low[truth] > high[control]
    # Best, or nothing is told apart from it: two methods that both notice scrambled weights differ by chance.
    assert mean[truth] >= mean.max() - (high[truth] - low[truth]) / 2 - 1e-9
    assert mean[control] <= mean.min() + 1e-9


@pytest.mark.parametrize("metric", NAMES)
def test_a_metric_says_what_it_is(metric):
    member = heedful.metrics()[metric]
    first = (inspect.getdoc(member) or "").splitlines()[0]
    assert 0 < len(first) <= 80
    assert member.question.endswith("?")
    assert member.better in ("higher", "lower")
    assert member.source
    assert member.not_for
    assert inspect.getmodule(member).__file__


@pytest.mark.parametrize("metric", NAMES)
def test_the_same_evaluation_gives_the_same_number(metric):
    member = heedful.metrics()[metric]()
    again = [measure(member, evaluation) for evaluation in evaluations(ASKED["noisy"])[:3]]
    assert again == list(values_of(metric, "noisy")[:3])


@pytest.mark.parametrize("metric", NAMES)
def test_scores_of_another_size_make_no_difference(metric):
    """Methods have scales of their own: none must win by its units."""
    member = heedful.metrics()[metric]()
    if "again" in member.wants:
        pytest.skip(reason="the explanation is made again, and would come with its own size")
    for evaluation in evaluations_of("noisy")[:3]:
        larger = replace(evaluation.explanation, scores=8 * evaluation.scores)
        assert np.isclose(
            measure(member, replace(evaluation, explanation=larger)), measure(member, evaluation), rtol=1e-9
        )


@pytest.mark.parametrize("metric", NAMES)
def test_a_missing_input_is_named_in_a_sentence(metric):
    """A evaluation that knows nothing but the explanation, of a function: a number, or one sentence of ours."""
    bare = _bare(heedful.wrap(lambda texts: [[0.0, float(len(text))] for text in texts]), "a good film")
    member: Metric = heedful.metrics()[metric]()
    message = ""
    try:
        assert np.isfinite(measure(member, bare))
    except HeedfulError as error:
        message = str(error)
    assert not message or (message.endswith(".") and "\n" not in message)
    assert message or not (member.wants - {"sign"} or member.needs - {"masks"})


def test_what_a_metric_wants_is_refused_before_it_is_measured(tiny):
    evaluation = _bare(tiny, "good film")
    for name, member in heedful.metrics().items():
        if member.wants - {"sign"}:
            with pytest.raises(Unsupported, match=name):
                measure(member(), evaluation)


def _bare(model, text: str) -> Evaluation:
    question = ask(model, [text])
    return Evaluation(question, heedful.explain(model, text, "random"), DocumentValues(question, "word"))
