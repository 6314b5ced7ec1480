"""Rank correlation of the scores with the effect of removing each unit alone."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.document import Absence, check_absence
from heedful.errors import Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.statistics.correlation import spearman

_SOURCE = "Nguyen & Martinez, 2020, arXiv:2007.07584, metric 2.3"


def _correlation(name: str, scores: Float[np.ndarray, "unit"], effects: Float[np.ndarray, "unit"]) -> float:
    correlation = spearman(scores, effects)
    if np.isnan(correlation):
        what = "all scores are equal" if np.ptp(scores) == 0 else "removing any unit has the same effect"
        raise Unsupported(f"{name} is undefined: {what}.")
    return correlation


@final
@dataclass(frozen=True)
class Monotonicity(Metric):
    """Spearman's ρ between |score| and the squared effect of replacing the unit.

    The effect of unit i is E[(f(x) − f(x with i replaced))²] over replacements (Nguyen & Martinez, 2020, metric 2.3).
    `absences` names the replacements, separated by commas: "replace,replace:the,replace:film" is the mean over three.
    Differs from the source: the effect is not divided by f², which does not change ranks.
    """

    name: ClassVar[str] = "monotonicity"
    question: ClassVar[str] = "Do units with larger |scores| have a larger effect when each is removed alone?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = "repeated evidence: removing one of two equal words changes little."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    absences: Absence = "replace"

    def __post_init__(self) -> None:
        for absence in self.absences.split(","):
            check_absence(absence)

    def measure(self, evaluation: Evaluation) -> float:
        changes = [evaluation.values.one_out(absence) ** 2 for absence in self.absences.split(",")]
        return _correlation(self.name, np.abs(evaluation.scores), np.mean(changes, axis=0))


@final
@dataclass(frozen=True)
class LooCorrelation(Metric):
    """Spearman's ρ between signed scores and leave-one-out effects.

    The test of Jain & Wallace (2019), who use Kendall's τ. For unsigned methods use `monotonicity`.
    """

    name: ClassVar[str] = "loo-correlation"
    question: ClassVar[str] = "Do scores have the sign and order of the effects of removing each unit alone?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Jain & Wallace, 2019, arXiv:1902.10186"
    not_for: ClassVar[str] = "leave-one-out itself, which scores 1 by definition, and unsigned methods."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset({"sign"})
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    absence: Absence = "replace"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        return _correlation(self.name, evaluation.scores, evaluation.values.one_out(self.absence))
