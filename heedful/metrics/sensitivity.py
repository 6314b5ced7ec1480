"""Whether units with an effect have a score, and units without effect have none."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer

_MASKS: frozenset[Offer] = frozenset({"masks"})
_SENSITIVITY = "Sundararajan et al., 2017, arXiv:1703.01365, Section 2.1"


def _changing(
    evaluation: Evaluation, metric: "Sensitivity | SignedSensitivity | NonSensitivity"
) -> tuple[Float[np.ndarray, "unit"], Bool[np.ndarray, "unit"]]:
    """The loss of the target without each unit alone, and which losses count as a change."""
    if not 0 <= metric.tolerance < 1:
        raise BadInput(f"needs 0 ≤ tolerance < 1; {metric.tolerance} was given.", metric.name)
    losses = evaluation.values.one_out(metric.absence)
    largest = float(np.abs(losses).max())
    # In single precision rounding alone changes the target by this much.
    if largest <= 1e-6 * abs(evaluation.values.whole(metric.absence)):
        raise Unsupported("removing any single unit does not change the output.", metric.name, ": ")
    return losses, np.abs(losses) > metric.tolerance * largest


def _nonzero(evaluation: Evaluation) -> Bool[np.ndarray, "unit"]:
    sizes = np.abs(evaluation.scores)
    return sizes > 1e-9 * sizes.max()


@final
@dataclass(frozen=True)
class Sensitivity(Metric):
    """Share of the units with an effect that have a score.

    Sundararajan et al., 2017, Section 2.1: if two inputs differ in one feature and have different outputs, that feature
    must have a non-zero attribution. Here the inputs are the text and the text without the unit, and the share of units
    for which it holds is reported. A change counts above `tolerance` times the largest one. The lecture's slide states
    it for inputs with equal outputs, by mistake: its counterexample, 1 − ReLU(1 − x), has different ones.
    """

    name: ClassVar[str] = "sensitivity"
    question: ClassVar[str] = "Does every word that affects the output have a score?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SENSITIVITY
    not_for: ClassVar[str] = "ranking methods: random numbers satisfy it too. signed-sensitivity asks for the sign."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    absence: Absence = "replace"
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        _, changing = _changing(evaluation, self)
        return float(_nonzero(evaluation)[changing].mean())


@final
@dataclass(frozen=True)
class SignedSensitivity(Metric):
    """Share of the units with an effect whose score has the sign of that effect.

    Ours: `sensitivity`, with a score that must not only be there but have the sign of the change.
    """

    name: ClassVar[str] = "signed-sensitivity"
    question: ClassVar[str] = "Does every word that affects the output have a score of the right sign?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = f"heedful, after {_SENSITIVITY}"
    not_for: ClassVar[str] = (
        "methods that divide joint effects among words: removed alone, a word may have the opposite sign."
    )
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = frozenset({"sign"})
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    absence: Absence = "replace"
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        losses, changing = _changing(evaluation, self)
        return float((_nonzero(evaluation) & (np.sign(evaluation.scores) == np.sign(losses)))[changing].mean())


@final
@dataclass(frozen=True)
class NonSensitivity(Metric):
    """Number of units with a score but no effect, or an effect but no score.

    |A₀ △ X₀| (Nguyen & Martinez, 2020, Metric 2.4): A₀ the units without a score, X₀ those without an effect, here
    that of leaving out the unit alone. Changes and scores below `tolerance` times the largest count as zero, and so do
    scores whose 95 % interval contains zero: in numbers with rounding or sampling hardly any is 0. Ours is
    `count="share"`, which divides by the number of units, so that long texts do not weigh more.
    """

    name: ClassVar[str] = "non-sensitivity"
    question: ClassVar[str] = "Do the words without effect, and only those, have a score of zero?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Nguyen & Martinez, 2020, arXiv:2007.07584, Metric 2.4"
    not_for: ClassVar[str] = "methods that smooth: a small score for every word counts as an error for each."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    absence: Absence = "replace"
    tolerance: float = 1e-3
    count: Literal["units", "share"] = "units"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        _, changing = _changing(evaluation, self)
        sizes, error = np.abs(evaluation.scores), evaluation.explanation.error
        none = sizes <= self.tolerance * sizes.max()
        if error is not None:
            none |= (error > 0) & (sizes <= error)
        wrong = none == changing
        return float(wrong.mean() if self.count == "share" else wrong.sum())
