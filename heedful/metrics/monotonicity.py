"""Rank correlation of the scores with the expected loss without each unit alone."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want, output_level
from heedful.models import Offer
from heedful.perturb.expected_loss import check_loss, mean_loss_of_each, mean_loss_over_words
from heedful.statistics.correlation import spearman
from heedful.statistics.ties import NOISE, settled

_SOURCE = "Nguyen & Martinez, 2020, arXiv:2007.07584, metric 2.3"


def _effects(evaluation: Evaluation, absence: Absence) -> Float[np.ndarray, "unit"]:
    """The loss without each unit; 0 where it may be rounding, which must not be ranked."""
    return settled(evaluation.values.one_out(absence), NOISE * output_level(evaluation.question))


def _correlation(name: str, scores: Float[np.ndarray, "unit"], effects: Float[np.ndarray, "unit"]) -> float:
    correlation = spearman(scores, effects)
    if np.isnan(correlation):
        what = "all scores are equal" if np.ptp(scores) == 0 else "removing any unit has the same effect"
        raise Unsupported(f"is undefined: {what}.", name)
    return correlation


@final
@dataclass(frozen=True)
class Monotonicity(Metric):
    """Spearman's ρ between |score| and the expected loss without the unit.

    The loss of unit i is E[ℓ(y*, f(x with i replaced))] over replacements (Nguyen & Martinez, 2020, metric 2.3), with
    y* = f(x) and `loss` a name of `LOSSES`. The source leaves open what replaces the unit. `data`, the name of a data
    set or a file with one text a line, draws `n_draws` words from it, the marginal distribution of a word. Otherwise
    `absences` names the replacements, separated by commas: "replace,replace:the,replace:film" is the mean over three.
    Differs from the source: the loss is not divided by f², which does not change ranks.
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
    loss: str = "squared"
    data: str = ""
    n_draws: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for absence in self.absences.split(","):
            check_absence(absence)
        check_loss(self.loss)
        if self.n_draws < 1:
            raise BadInput(f"needs n_draws ≥ 1; {self.n_draws} was given.", self.name)

    def measure(self, evaluation: Evaluation) -> float:
        floor = (NOISE * output_level(evaluation.question)) ** 2
        if self.data:
            losses = mean_loss_over_words(evaluation.values, self.loss, self.data, self.n_draws, self.seed)
        else:
            losses = mean_loss_of_each(evaluation.values, self.loss, self.absences.split(","))
        return _correlation(self.name, np.abs(evaluation.settled), settled(losses, floor))


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
        return _correlation(self.name, evaluation.settled, _effects(evaluation, self.absence))
