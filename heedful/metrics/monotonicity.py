"""Whether the order of the scores is the order of what units do alone."""

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
    found = spearman(scores, effects)
    if np.isnan(found):
        what = "the scores are all the same" if np.ptp(scores) == 0 else "no unit moves the output more than another"
        raise Unsupported(f"{name} is not known where {what}.")
    return found


@final
@dataclass(frozen=True)
class Monotonicity(Metric):
    """Spearman's ρ of |score| and the loss that is expected without the unit.

    The loss of unit i is E[(f(x) − f(x with i replaced))²] over what may stand in its place (Nguyen & Martinez, 2020,
    metric 2.3). `absences` are those stand-ins, with commas between: "replace,replace:the,replace:film" takes the mean
    over three. Differs from the source: the loss is not divided by f², which does not
    change ranks.
    """

    name: ClassVar[str] = "monotonicity"
    question: ClassVar[str] = "Are units with larger scores those that matter more alone?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = "evidence that stands in a text twice: neither occurrence matters alone."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    absences: Absence = "replace"

    def __post_init__(self) -> None:
        for absence in self.absences.split(","):
            check_absence(absence)

    def measure(self, evaluation: Evaluation) -> float:
        changes = [evaluation.answers.one_out(absence) ** 2 for absence in self.absences.split(",")]
        return _correlation(self.name, np.abs(evaluation.scores), np.mean(changes, axis=0))


@final
@dataclass(frozen=True)
class LooCorrelation(Metric):
    """Spearman's ρ of the signed scores and what the target loses without each.

    The test of Jain & Wallace (2019), who use Kendall's τ. Methods without a sign are judged by `monotonicity`.
    """

    name: ClassVar[str] = "loo-correlation"
    question: ClassVar[str] = "Do its signs and sizes follow what each unit does alone?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Jain & Wallace, 2019, arXiv:1902.10186"
    not_for: ClassVar[str] = "leave-one-out itself, which is 1 by definition, and methods without a sign."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset({"sign"})
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    absence: Absence = "replace"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        return _correlation(self.name, evaluation.scores, evaluation.answers.one_out(self.absence))
