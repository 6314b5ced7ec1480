"""The contract of metrics: what an evaluation knows about its explanation, and what `measure` refuses."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want, direction, measure
from heedful.models import Offer
from heedful.models.twins.twin import twin
from tests.metrics.masked_text import TEXT, evaluation_by, evaluation_of


@dataclass(frozen=True)
class Constant(Metric):
    """The number that it is given."""

    name: ClassVar[str] = "constant"
    question: ClassVar[str] = "Which number?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "none"
    not_for: ClassVar[str] = "anything."
    needs: ClassVar[frozenset[Offer]] = frozenset()
    wants: ClassVar[frozenset[Want]] = frozenset()

    value: float = 1.5

    def measure(self, evaluation: Evaluation) -> float:
        return self.value


def wanting(*wants: Want, needs: frozenset[Offer] = frozenset()) -> Metric:
    """A constant metric that needs something."""
    return type("Wanting", (Constant,), {"wants": frozenset(wants), "needs": needs})()


def test_units_are_ordered_by_score_and_by_size(tiny):
    evaluation = evaluation_of(tiny, "good film bad plot", [0.5, -2.0, 1.0, -0.1])
    assert evaluation.highest.tolist() == [2, 0, 3, 1]
    assert evaluation.lowest.tolist() == [1, 3, 0, 2]
    assert evaluation.strongest.tolist() == [1, 2, 0, 3]


def test_equal_scores_are_ordered_at_random_but_alike_for_all_methods(tiny):
    first, second = (evaluation_of(tiny, TEXT, np.full(11, score)) for score in (1.0, 3.0))
    assert first.highest.tolist() == second.highest.tolist() == second.lowest.tolist() == first.strongest.tolist()
    assert sorted(first.highest.tolist()) == list(range(11))
    assert first.highest.tolist() not in (list(range(11)), list(range(11))[::-1])
    # Another text has another order.
    words = TEXT.split()
    assert evaluation_of(tiny, " ".join(words[::-1]), np.ones(11)).highest.tolist() != first.highest.tolist()


def test_a_direction_has_length_one_and_zeros_stay_zeros():
    assert direction(np.array([3.0, -4.0])) == pytest.approx([0.6, -0.8], rel=1e-12)
    assert direction(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


def test_the_distance_of_scores_does_not_depend_on_their_size_and_is_at_most_two(tiny):
    evaluation = evaluation_of(tiny, "good film bad plot", [1.0, 0.0, -1.0, 0.5])
    explanation, scores = evaluation.explanation, evaluation.scores

    def distance(values: np.ndarray) -> float:
        return evaluation.distance(replace(explanation, scores=values))

    assert distance(5 * scores) == pytest.approx(0.0, abs=1e-12)
    assert distance(-scores) == pytest.approx(2.0, rel=1e-12)
    other = np.array([0.0, 1.0, 1.0, 0.0])
    cosine = scores @ other / np.sqrt((scores @ scores) * (other @ other))
    assert distance(other) == pytest.approx(np.sqrt(2 - 2 * cosine), rel=1e-12)


def test_a_rerun_is_the_explainer_with_another_seed_model_or_text(tiny):
    settings = {"n_samples": 60, "absence": "replace"}
    evaluation = evaluation_by(tiny, "lime", **settings, seed=4)
    target = evaluation.explanation.target
    for rerun, seed in ((evaluation.rerun(9), 9), (evaluation.rerun_with_seed(2), 6)):
        assert rerun.scores == pytest.approx(
            heedful.explain(tiny, TEXT, "lime", target=target, seed=seed, **settings).scores, abs=1e-12
        )
    text = "not a dull film"
    expected = heedful.explain(tiny, text, "lime", target=target, seed=4, **settings)
    assert evaluation.rerun(text=text).scores == pytest.approx(expected.scores, abs=1e-12)
    assert evaluation.rerun(model=twin(tiny)).model == twin(tiny).fingerprint


def test_every_seed_is_run_once_and_a_deterministic_method_never(tiny):
    evaluation = evaluation_by(tiny, "lime", n_samples=60)
    assert evaluation.rerun_with_seed(1) is evaluation.rerun_with_seed(1)
    assert evaluation.rerun_with_seed(2) is not evaluation.rerun_with_seed(1)
    exact = evaluation_by(tiny, "leave-one-out")
    assert exact.rerun_with_seed(3) is exact.explanation


def test_a_value_that_is_not_finite_is_refused(tiny):
    evaluation = evaluation_of(tiny, "good film", [1.0, 2.0])
    assert measure(Constant(), evaluation) == 1.5
    for value in (np.nan, np.inf):
        with pytest.raises(BadInput, match="constant is not finite"):
            measure(Constant(value), evaluation)


@pytest.mark.parametrize(
    ("want", "message"),
    [
        ("sign", "unsigned"),
        ("again", "cannot be run again"),
        ("rationale", "no human rationale"),
        ("gold", "pass them as gold"),
        ("twin", "pass one as twin"),
    ],
)
def test_what_a_metric_wants_and_an_evaluation_lacks_is_named(tiny, want, message):
    bare = evaluation_of(tiny, "good film", [1.0, 2.0], signed=False)
    with pytest.raises(Unsupported, match=message):
        measure(wanting(want), bare)
    marks = np.array([True, False])
    full = replace(evaluation_by(tiny, "leave-one-out", "good film"), rationale=marks, gold=marks, twin=twin(tiny))
    assert measure(wanting(want), full) == 1.5


def test_a_model_without_what_a_metric_needs_is_refused():
    model = heedful.wrap(lambda texts: [[0.0, float(len(text))] for text in texts])
    evaluation = evaluation_of(model, "good film", [1.0, 2.0])
    with pytest.raises(Unsupported, match="constant"):
        measure(wanting(needs=frozenset({"gradients"})), evaluation)
    assert measure(wanting(needs=frozenset({"masks"})), evaluation) == 1.5
