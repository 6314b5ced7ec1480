"""The change of the target when one unit is removed."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.explainers import Group, MaskingExplainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.forecast import MaskCount
from heedful.perturb.sweep import Sweep


@final
@dataclass(frozen=True)
class LeaveOneOut(MaskingExplainer):
    """Drop in the target when one unit is removed: f(x) − f(x without it).

    Reference: Li, Monroe & Jurafsky, 2016, arXiv:1612.08220; used by Jain & Wallace, 2019, against attention.
    """

    name: ClassVar[str] = "leave-one-out"
    group: ClassVar[Group] = "removal"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "single"
    summary_group: ClassVar[tuple[str, int] | None] = ("leave-one-out", 1)

    absence: Absence = "replace"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def n_masks(self, n_units: int) -> MaskCount:
        return MaskCount(n_units + 1, None)

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        sweep = Sweep(question, index, self.unit, self.absence)
        n_units = sweep.n_units
        keep = np.concatenate([np.ones((1, n_units), dtype=bool), ~np.eye(n_units, dtype=bool)])
        values = sweep(keep)
        scores = values[0] - values[1:]
        return self.explanation(question, index, scores, np.zeros_like(scores), {"masks": sweep.n_evaluated}).noted(
            sweep.notes
        )
