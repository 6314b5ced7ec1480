"""Agreement of explanations of the same text with different seeds."""

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
    """The explanation and its repetitions with other seeds."""
    if metric.n_runs < 1:
        raise BadInput(f"needs n_runs ≥ 1; {metric.n_runs} was given.", metric.name)
    return [evaluation.explanation, *(evaluation.rerun_with_seed(number + 1) for number in range(metric.n_runs))]


def _strongest_units(evaluation: Evaluation, run: Explanation, metric: "Vsi | Csi") -> Int[np.ndarray, "_"]:
    """The strongest units of a run; at most half of all units, so that runs can differ."""
    n_units = len(run.scores)
    n_named = min(metric.n_strongest, n_units // 2)
    if metric.n_strongest < 1:
        raise BadInput(f"needs n_strongest ≥ 1; {metric.n_strongest} was given.", metric.name)
    if n_named == 0:
        raise Unsupported(f"the text has {n_units} unit; at least 2 are needed.", metric.name, ": ")
    return np.lexsort((evaluation.tie_breaks, -np.abs(run.scores)))[:n_named]


@final
@dataclass(frozen=True)
class Consistency(Metric):
    """Variance of the scores over seeds, after scaling each run to length 1.

    Σ_j Var_r(φ_j^r / ‖φ^r‖) over the explanation and `n_runs` more, which is half the mean squared distance of
    two runs: 0 for deterministic methods, 1 if two runs have nothing in common.

    The lecture's chapter 10.1 asks for a small variance and does not specify its scale.
    """

    name: ClassVar[str] = "consistency"
    question: ClassVar[str] = "Does the same text get the same explanation with another seed?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = f"Variance over seeds; {_VISANI}"
    not_for: ClassVar[str] = "faithfulness: a method can be wrong in the same way every time."
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS

    n_runs: int = 2

    def measure(self, evaluation: Evaluation) -> float:
        runs = [direction(run.scores) for run in _runs(evaluation, self)]
        # Over pairs and not around the mean: rounding makes the mean differ from runs that are all equal.
        return float(np.mean([((one - other) ** 2).sum() / 2 for one, other in combinations(runs, 2)]))


@final
@dataclass(frozen=True)
class Vsi(Metric):
    """Variables Stability Index: overlap of the strongest units of two runs.

    Visani et al., 2020, the VSI: the mean over pairs of runs of |V_a ∩ V_b| / k, 0 to 1.
    Differs from the source: any method is measured; V is the `n_strongest` units of either sign, at most half of all,
    ties broken at random.
    """

    name: ClassVar[str] = "vsi"
    question: ClassVar[str] = "Does it select the same words with another seed?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _VISANI
    not_for: ClassVar[str] = "faithfulness; comparing texts of different length: in short texts overlap is likely."
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    n_runs: int = 2
    n_strongest: int = 10

    def measure(self, evaluation: Evaluation) -> float:
        named = [set(_strongest_units(evaluation, run, self).tolist()) for run in _runs(evaluation, self)]
        return float(np.mean([len(one & other) / len(one) for one, other in combinations(named, 2)]))


@final
@dataclass(frozen=True)
class Csi(Metric):
    """Coefficients Stability Index: how often intervals of two runs overlap.

    Visani et al., 2020, the CSI: the mean over the strongest units and over pairs of runs of
    [the two 95 % intervals overlap]. A method without intervals has intervals of width 0.
    Differs from the source: every unit has a score in every run, so every pair of runs counts for a unit that is among
    the strongest of any run.
    """

    name: ClassVar[str] = "csi"
    question: ClassVar[str] = "Do the intervals of two seeds overlap?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _VISANI
    not_for: ClassVar[str] = "ranking methods by precision: wide intervals always overlap."
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    n_runs: int = 2
    n_strongest: int = 10

    def measure(self, evaluation: Evaluation) -> float:
        runs = _runs(evaluation, self)
        named = np.unique(np.concatenate([_strongest_units(evaluation, run, self) for run in runs]))
        return float(np.mean([_overlap(one, other)[named] for one, other in combinations(runs, 2)]))


def _overlap(one: Explanation, other: Explanation) -> Float[np.ndarray, "unit"]:
    """1 where the intervals of two runs overlap, up to rounding."""
    widths = sum(np.zeros_like(run.scores) if run.error is None else run.error for run in (one, other))
    rounding = 1e-9 * max(np.abs(one.scores).max(), np.abs(other.scores).max())
    return (np.abs(one.scores - other.scores) <= widths + rounding).astype(np.float64)
