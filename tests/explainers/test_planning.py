"""How explainers count their masks, and how a time limit lowers them."""

from dataclasses import replace
from time import perf_counter

import pytest

import heedful
from heedful.errors import BadInput
from heedful.explainers import planning
from heedful.explainers.gradient import GradientL1
from heedful.explainers.gradient_shap import GradientShap
from heedful.explainers.hierarchical_shapley import HierarchicalShapley
from heedful.explainers.integrated_gradients import IntegratedGradients
from heedful.explainers.leave_one_out import LeaveOneOut
from heedful.explainers.lime import Lime
from heedful.explainers.planning import mask_forecast, within_budget
from heedful.explainers.smooth_gradient import SmoothGradient
from heedful.explainers.sobol import Sobol
from heedful.models.question import ask
from heedful.perturb.forecast import Forecast
from tests.conftest import tiny_model
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


TEN_SECONDS = 10.0


class Clock:
    """A clock that a run moves on by a tenth of a second for every mask, or pass, of the explainer's setting."""

    def __init__(self, monkeypatch, kind, setting):
        self.time, run = 0.0, kind.explain_batch

        def explain_batch(explainer, question):
            self.time += 0.1 * getattr(explainer, setting)
            return run(explainer, question)

        monkeypatch.setattr(kind, "explain_batch", explain_batch)
        monkeypatch.setattr(planning, "perf_counter", lambda: self.time)


@pytest.mark.parametrize(
    ("family", "explainer", "setting", "n"),
    [
        ("single-layer", HierarchicalShapley(budget=2**31, absence="mean"), "budget", 90),
        ("single-layer", Lime(n_samples=5000), "n_samples", 90),
        ("bert", GradientShap(n_samples=50_000), "n_samples", 90),
        ("bert", SmoothGradient(n_samples=50_000), "n_samples", 90),
        ("bert", IntegratedGradients(n_steps=50_000), "n_steps", 90),
    ],
)
def test_a_time_limit_holds_for_cheap_masks_and_for_gradients(monkeypatch, family, explainer, setting, n):
    model = tiny_model() if family == "single-layer" else build(family)
    Clock(monkeypatch, type(explainer), setting)
    question = ask(model, [LONG])
    limited = within_budget(explainer, replace(question, budget=replace(question.budget, seconds=TEN_SECONDS)))
    assert limited.explainer == replace(explainer, **{setting: n})
    assert [note.kind for note in limited.notes] == ["limited"]
    assert f"{setting} was lowered" in limited.notes[0]
    assert limited.n_probes > 0
    enough = replace(question, budget=replace(question.budget, seconds=1e9))
    assert within_budget(explainer, enough).explainer == explainer
    with pytest.raises(BadInput, match=r"needs about .*Raise seconds"):
        within_budget(explainer, replace(question, budget=replace(question.budget, seconds=0.1)))


def test_a_second_is_kept_on_the_bundled_model_whatever_the_budget(paper):
    text = " ".join(paper.vocabulary.words[2:257])
    start = perf_counter()
    explanation = heedful.explain(
        paper, text, "hierarchical-shapley", seconds=0.5, absence="mean", budget=2**31, target=1
    )
    # It took 31 s; the bound is wide, as other processes may slow a test down.
    assert perf_counter() - start < 8
    assert any(note.kind == "limited" for note in explanation.notes)


@pytest.mark.parametrize(("explainer", "seconds"), [(LeaveOneOut(), 10.0), (Lime(n_samples=300), 1.0)])
def test_a_time_limit_that_no_setting_can_keep_is_refused(monkeypatch, question, explainer, seconds):
    enough = int(0.9 * seconds)
    with pytest.raises(BadInput, match=f"{explainer.name} needs .* enough for only {enough} forward passes"):
        within_budget(explainer, with_a_second_a_mask(monkeypatch, question, seconds))
