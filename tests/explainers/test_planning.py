"""How explainers count their masks, and how a time limit lowers them."""

from dataclasses import replace

import pytest

from heedful.errors import BadInput
from heedful.explainers import planning
from heedful.explainers.gradient import GradientL1
from heedful.explainers.leave_one_out import LeaveOneOut
from heedful.explainers.lime import Lime
from heedful.explainers.planning import mask_forecast, within_budget
from heedful.explainers.sobol import Sobol
from heedful.models.question import ask
from heedful.perturb.forecast import Forecast
from tests.families import build

SHORT, LONG = "good film", "the film was good and very bright but the plot was not good and very dull"


@pytest.fixture
def question():
    return ask(build("bert"), [SHORT, LONG])


def with_a_second_a_mask(monkeypatch, question, seconds):
    """A question whose time limit is that, on a machine that takes one second for a mask."""
    monkeypatch.setattr(
        planning, "forecast", lambda _q, _i, _unit, _absence, n, at_most: Forecast(n, at_most, 1.0, 0, 7, 12)
    )
    return replace(question, budget=replace(question.budget, seconds=seconds))


def test_masks_are_those_of_the_longest_document(question):
    n_words = len(LONG.split())
    cost = mask_forecast([LeaveOneOut(), GradientL1(), Sobol(n_samples=300)], question)
    assert cost.n_masks == n_words + 1 + 300
    assert not cost.at_most


def test_no_more_masks_are_counted_than_there_are_subsets():
    cost = mask_forecast([Lime(n_samples=300)], ask(build("bert"), [SHORT]))
    assert cost.n_masks == 2**2


def test_methods_without_masks_and_models_that_pool_have_no_forecast(tiny, question):
    assert mask_forecast([GradientL1()], question) is None
    assert mask_forecast([Lime()], ask(tiny, [SHORT])) is None


def test_a_run_within_its_time_limit_keeps_its_settings(monkeypatch, question):
    limited = within_budget(Lime(n_samples=300), with_a_second_a_mask(monkeypatch, question, 300.0))
    assert limited.explainer == Lime(n_samples=300)
    assert limited.notes == ()
    assert limited.question.budget.at_once == 7


def test_a_time_limit_lowers_the_number_of_samples(monkeypatch, question):
    limited = within_budget(Lime(n_samples=300), with_a_second_a_mask(monkeypatch, question, 200.0))
    assert limited.explainer == Lime(n_samples=180), "a tenth of the time is left for everything else"
    assert [note.kind for note in limited.notes] == ["limited"]
    assert "from 300 to 180" in limited.notes[0]
    assert limited.n_probes == 12


@pytest.mark.parametrize(("explainer", "seconds"), [(LeaveOneOut(), 10.0), (Lime(n_samples=300), 1.0)])
def test_a_time_limit_that_no_setting_can_keep_is_refused(monkeypatch, question, explainer, seconds):
    with pytest.raises(
        BadInput, match=f"{explainer.name} needs .* enough for only {int(0.9 * seconds)} forward passes"
    ):
        within_budget(explainer, with_a_second_a_mask(monkeypatch, question, seconds))
