from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar, final

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.explainers import Explainer
from heedful.explainers.run import run_explainer
from heedful.metrics import Evaluation, measure
from heedful.metrics.consistency import Consistency, Csi, Vsi
from heedful.models.question import ask
from heedful.perturb.document_values import DocumentValues
from heedful.perturb.masks import generator
from tests.metrics.masked_text import TEXT, evaluation_by

METRICS = [Consistency(), Vsi(), Csi()]


def runs_of(model, method, seeds, **settings):
    return [heedful.explain(model, TEXT, method, seed=seed, **settings) for seed in seeds]


@pytest.mark.parametrize(("method", "settings"), [("random", {}), ("lime", {"n_samples": 60})])
def test_consistency_is_the_variance_over_seeds_of_scores_of_length_one(tiny, method, settings):
    runs = runs_of(tiny, method, [5, 6, 7, 8], **settings)
    unit = np.array([run.scores / np.sqrt((run.scores**2).sum()) for run in runs])
    mean = unit.sum(axis=0) / 4
    expected = ((unit - mean) ** 2).sum() / 3
    value = measure(Consistency(n_runs=3), evaluation_by(tiny, method, seed=5, **settings))
    assert value == pytest.approx(expected, rel=1e-12)
    assert value > 0


@pytest.mark.parametrize(("method", "settings"), [("random", {}), ("lime", {"n_samples": 60})])
def test_vsi_is_the_share_of_named_units_that_two_runs_have_in_common(tiny, method, settings):
    tops = [
        {place for _, place in sorted((-abs(score), place) for place, score in enumerate(run.scores))[:3]}
        for run in runs_of(tiny, method, [0, 1, 2], **settings)
    ]
    expected = np.mean([len(a & b) / 3 for a, b in combinations(tops, 2)])
    assert measure(Vsi(n_strongest=3), evaluation_by(tiny, method, **settings)) == pytest.approx(expected)


def test_csi_is_how_often_the_intervals_of_named_units_meet(tiny):
    settings = {"n_samples": 60}
    runs = runs_of(tiny, "lime", [0, 1, 2], **settings)
    named = set()
    for run in runs:
        named |= {run.scores.tolist().index(score) for _, score in run.top(3)}
    meets = [
        min(a.scores[j] + a.error[j], b.scores[j] + b.error[j])
        >= max(a.scores[j] - a.error[j], b.scores[j] - b.error[j])
        for a, b in combinations(runs, 2)
        for j in named
    ]
    value = measure(Csi(n_strongest=3), evaluation_by(tiny, "lime", **settings))
    assert value == pytest.approx(np.mean(meets))
    assert value > 0.8


def test_without_intervals_scores_are_held_to_be_points(tiny):
    assert measure(Csi(), evaluation_by(tiny, "random")) == 0.0
    one = evaluation_by(tiny, "integrated-gradients")
    one = replace(one, explanation=replace(one.explanation, error=None))
    assert measure(Csi(), one) == 1.0


@pytest.mark.parametrize("method", ["lime-exact", "shapley-exact", "leave-one-out", "gradient-l2", "attention-mean"])
def test_every_run_of_a_deterministic_method_is_the_same(tiny, method):
    evaluation = evaluation_by(tiny, method)
    assert [measure(metric, evaluation) for metric in METRICS] == [0.0, 1.0, 1.0]


n_run: list[int] = []


@final
@dataclass(frozen=True)
class Noted(Explainer):
    """Chance that says with which seed it was asked."""

    name: ClassVar[str] = "noted"
    needs: ClassVar[frozenset] = frozenset()
    signed: ClassVar[bool] = True
    seed: int = 3

    def explain_batch(self, question):
        n_run.append(self.seed)
        (document,) = question.documents
        scores = generator(self.seed, document).standard_normal(document.n_units("word"))
        return [self.explanation(question, 0, scores, None, {})]


def test_the_runs_are_made_once_for_all_three(tiny):
    n_run.clear()
    question = ask(tiny, [TEXT])
    evaluation = Evaluation(question, run_explainer(Noted(), question)[0], DocumentValues(question, "word"), Noted())
    for metric in METRICS:
        measure(metric, evaluation)
    assert n_run == [3, 4, 5]


def test_a_random_model_has_no_consistent_explanation():
    rng = np.random.default_rng(0)
    model = heedful.wrap(lambda texts: [[0.0, len(text) + rng.normal()] for text in texts])
    assert measure(Consistency(), evaluation_by(model, "leave-one-out")) > 0


@pytest.mark.parametrize("metric", [Consistency, Vsi, Csi])
def test_no_more_runs_is_refused(tiny, metric):
    with pytest.raises(BadInput, match="n_runs ≥ 1"):
        measure(metric(n_runs=0), evaluation_by(tiny, "random"))


@pytest.mark.parametrize("metric", [Vsi, Csi])
def test_of_one_unit_nothing_can_be_named(tiny, metric):
    with pytest.raises(Unsupported, match="the text has 1 unit; at least 2 are needed"):
        measure(metric(), evaluation_by(tiny, "random", "film"))
    with pytest.raises(BadInput, match="n_strongest ≥ 1"):
        measure(metric(n_strongest=0), evaluation_by(tiny, "random"))
