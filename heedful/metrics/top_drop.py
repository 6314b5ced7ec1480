"""Drop of the output without the few units of highest score."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.errors import BadInput
from heedful.metrics import Better, Evaluation, Metric, Use, Want
from heedful.models import Offer
from heedful.perturb.masks import first


@final
@dataclass(frozen=True)
class TopDrop(Metric):
    """Drop of the output without the units of highest score: a fixed number of them.

    f(x) − f(x without the `n_top` highest), or the mean over 1, 3 and 5 of them (Cohen-Wang et al., 2024:
    top-k log-probability drop, with the log-probability of the written text as f). A text with fewer units loses all of
    them. `evidence-for` and `comprehensiveness` remove shares of the units, this a number.
    """

    name: ClassVar[str] = "top-drop"
    question: ClassVar[str] = "Does the output fall without the few units of highest score?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Cohen-Wang et al., 2024, arXiv:2409.00729"
    not_for: ClassVar[str] = "unsigned methods; comparing models, absences or texts of different lengths."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset({"sign"})
    uses: ClassVar[tuple[Use, ...]] = ("find the sources of the output",)
    for_written: ClassVar[bool] = True
    in_target: ClassVar[bool] = True

    absence: Absence = "replace"
    n_top: int | Literal["1,3,5"] = "1,3,5"

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if not isinstance(self.n_top, str) and self.n_top < 1:
            raise BadInput(f"needs n_top ≥ 1; {self.n_top} was given.", self.name)

    def measure(self, evaluation: Evaluation) -> float:
        counts = np.array([1, 3, 5] if isinstance(self.n_top, str) else [self.n_top])
        without = ~first(evaluation.highest, counts)
        return float((evaluation.values.whole(self.absence) - evaluation.values(without, self.absence)).mean())
