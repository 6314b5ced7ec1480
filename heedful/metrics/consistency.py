"""Whether the same text gets the same explanation, whatever the seed."""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float, Int

from heedful.errors import BadInput, Unsupported
from heedful.explanation import Explanation
from heedful.metrics import Better, Evaluation, Metric, Want, direction
from heedful.models import Offer

_NEEDS: frozenset[Offer] = frozenset()
_WANTS: frozenset[Want] = frozenset({"again"})
_VISANI = "Visani et al., 2020, arXiv:2001.11757"


def _runs(evaluation: Evaluation, metric: "Consistency | Vsi | Csi") -> list[Explanation]:
    """The explanation and those of other seeds."""
    if metric.n_runs < 1:
        raise BadInput(f"{metric.name} needs at least 1 more run; n_runs is {metric.n_runs}.")
    return [evaluation.explanation, *(evaluation.rerun_with_seed(number + 1) for number in range(metric.n_runs))]


def _named(evaluation: Evaluation, run: Explanation, metric: "Vsi | Csi") -> Int[np.ndarray, "_"]:
    """The units that a run names: the strongest, at most half of all, lest every run name the same."""
    n_units = len(run.scores)
    n_named = min(metric.n_strongest, n_units // 2)
    if metric.n_strongest < 1:
        raise BadInput(f"{metric.name} needs n_strongest ≥ 1; {metric.n_strongest} was given.")
    if n_named == 0:
        raise Unsupported(f"{metric.name}: of {n_units} units none can be told from the others.")
    return np.lexsort((evaluation.tie_breaks, -np.abs(run.scores)))[:n_named]


@final
@dataclass(frozen=True)
class Consistency(Metric):
    """The variance of the scores over seeds, for scores brought to length one.

    Σ_j Var_r(φ_j^r / ‖φ^r‖) over the explanation and `n_runs` more, which is half the mean square distance of two
    runs: 0 where nothing is left to chance, 1 where two runs have nothing in common.

    The lecture's chapter 10.1 asks for a small variance and leaves its scale open.
    """

    name: ClassVar[str] = "consistency"
    question: ClassVar[str] = "Does the same text get the same explanation with another seed?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = f"Variance over seeds; {_VISANI}"
    not_for: ClassVar[str] = "faithfulness: a method may be wrong in the same way every time."
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS

    n_runs: int = 2

    def measure(self, evaluation: Evaluation) -> float:
        runs = [direction(run.scores) for run in _runs(evaluation, self)]
        # Of pairs and not around the mean, which rounding keeps from being equal to runs that are.
        return float(np.mean([((one - other) ** 2).sum() / 2 for one, other in combinations(runs, 2)]))


@final
@dataclass(frozen=True)
class Vsi(Metric):
    """LIME's stability of variables: the share of strongest units two runs name.

    Visani et al., 2020, the Variables Stability Index: the mean over pairs of runs of |V_a ∩ V_b| / k, 0 to 1.
    Differs from the source: any method is judged; the named are the `n_strongest` units of either sign, at most half of
    them, equals by lot.
    """

    name: ClassVar[str] = "vsi"
    question: ClassVar[str] = "Does it name the same words with another seed?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _VISANI
    not_for: ClassVar[str] = "faithfulness, and for comparing texts of different length: in short ones names coincide."
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    default: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    n_runs: int = 2
    n_strongest: int = 10

    def measure(self, evaluation: Evaluation) -> float:
        named = [set(_named(evaluation, run, self).tolist()) for run in _runs(evaluation, self)]
        return float(np.mean([len(one & other) / len(one) for one, other in combinations(named, 2)]))


@final
@dataclass(frozen=True)
class Csi(Metric):
    """LIME's stability of coefficients: how often the intervals of two runs overlap.

    Visani et al., 2020, the Coefficients Stability Index: the mean over the named units and over pairs of runs of
    [the two 95 % intervals meet]. An interval of no width is a point, and so is the score of a method that gives none:
    who names no uncertainty is held to the number.
    Differs from the source: every unit has a score in every run, so that each pair of runs counts for a unit that any
    of them names.
    """

    name: ClassVar[str] = "csi"
    question: ClassVar[str] = "Do its intervals hold what another seed finds?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _VISANI
    not_for: ClassVar[str] = "ranking methods by precision: intervals that are wide enough always meet."
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    default: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    n_runs: int = 2
    n_strongest: int = 10

    def measure(self, evaluation: Evaluation) -> float:
        runs = _runs(evaluation, self)
        named = np.unique(np.concatenate([_named(evaluation, run, self) for run in runs]))
        return float(np.mean([_meet(one, other)[named] for one, other in combinations(runs, 2)]))


def _meet(one: Explanation, other: Explanation) -> Float[np.ndarray, "unit"]:
    """1 where the intervals of two runs have a point in common, up to rounding."""
    widths = sum(np.zeros_like(run.scores) if run.error is None else run.error for run in (one, other))
    rounding = 1e-9 * max(np.abs(one.scores).max(), np.abs(other.scores).max())
    return (np.abs(one.scores - other.scores) <= widths + rounding).astype(np.float64)
