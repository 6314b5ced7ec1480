"""Whether what changes the output has a score, and what does not has none."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer

_MASKS: frozenset[Offer] = frozenset({"masks"})


def _changing(
    evaluation: Evaluation, metric: "Sensitivity | NonSensitivity"
) -> tuple[Float[np.ndarray, "unit"], Bool[np.ndarray, "unit"]]:
    """What the target loses when each unit goes alone, and which of these count as a change."""
    if not 0 <= metric.tolerance < 1:
        raise BadInput(f"{metric.name} needs a tolerance from 0 to below 1; {metric.tolerance} was given.")
    lost = evaluation.answers.one_out(metric.absence)
    largest = float(np.abs(lost).max())
    # What rounding leaves of a target in single precision is no change.
    if largest <= 1e-6 * abs(evaluation.answers.whole(metric.absence)):
        raise Unsupported(f"{metric.name}: no unit changes the output when it goes alone.")
    return lost, np.abs(lost) > metric.tolerance * largest


@final
@dataclass(frozen=True)
class Sensitivity(Metric):
    """The share of units that change f alone and have a score of that sign.

    Sundararajan et al., 2017, Section 2.1: two inputs that differ in one feature and have different outputs must give
    it a non-zero attribution. A change counts above `tolerance` times the largest one. Differs from the source: the
    sign must be that of the change too, and a share is reported, not an axiom. Differs from the lecture, whose text
    asks it of inputs with equal outputs.
    """

    name: ClassVar[str] = "sensitivity"
    question: ClassVar[str] = "Does every word that changes the output have a score of that sign?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Sundararajan et al., 2017, arXiv:1703.01365"
    not_for: ClassVar[str] = "scores that share an effect among words: alone, a word may push the other way."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = frozenset({"sign"})
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    absence: Absence = "replace"
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        lost, changing = _changing(evaluation, self)
        there = np.abs(evaluation.scores) > 1e-9 * np.abs(evaluation.scores).max()
        return float((there & (np.sign(evaluation.scores) == np.sign(lost)))[changing].mean())


@final
@dataclass(frozen=True)
class NonSensitivity(Metric):
    """The share of units with a score and no effect, or an effect and no score.

    |A₀ △ X₀| / d (Nguyen & Martinez, 2020, Metric 2.4): A₀ the units without a score, X₀ those that do not change f.
    What is below `tolerance` times the largest is none, of changes as of scores, and so is a score whose 95 % interval
    holds zero. Differs from the source: X₀ is found by leaving each unit out alone and not by an expected loss; the
    number is over that of units.
    """

    name: ClassVar[str] = "non-sensitivity"
    question: ClassVar[str] = "Do the words without effect, and only they, have no score?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Nguyen & Martinez, 2020, arXiv:2007.07584, Metric 2.4"
    not_for: ClassVar[str] = "methods that smooth or share: a small score for every word is wrong for each word."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    absence: Absence = "replace"
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        _, changing = _changing(evaluation, self)
        sizes, error = np.abs(evaluation.scores), evaluation.explanation.error
        none = sizes <= self.tolerance * sizes.max()
        if error is not None:
            none |= (error > 0) & (sizes <= error)
        return float((none == changing).mean())
