"""The change of the target when a sliding window is removed."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool, Int

from heedful.document import Absence, Document, check_absence
from heedful.document.note import Note
from heedful.errors import BadInput
from heedful.explainers import Group, MaskingExplainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.forecast import MaskCount
from heedful.perturb.sweep import Sweep


@final
@dataclass(frozen=True)
class Occlusion(MaskingExplainer):
    """Drop in the target per unit when a sliding window is removed.

        score_j = mean over the windows w that contain j of (f(x) − f(x without w)) / |w|

    A window is `width` consecutive units, of an image `width` × `width` patches, and moves by `stride`; with width 1
    this is leave-one-out. Reference: Zeiler & Fergus, 2014, arXiv:1311.2901.

    Differs from the paper, which gives the drop of a window to its centre: here every unit gets an equal share of the
    drop of each window that contains it, so with stride = width the scores sum to the drops of all windows. captum's
    Occlusion takes the same mean without dividing by |w|. As in captum, the last window may be cut by the end of the
    text or the edge of the image. Units are consecutive in the order of `e.units`, types in the order of their first
    occurrence; in a pair, a window may contain units of both texts.
    """

    name: ClassVar[str] = "occlusion"
    group: ClassVar[Group] = "removal"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "joint"

    width: int = 3
    stride: int = 1
    absence: Absence = "replace"

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if not 1 <= self.stride <= self.width:
            raise BadInput(
                f"{self.name} needs 1 ≤ stride ≤ width, so that windows cover every unit; stride {self.stride} and "
                f"width {self.width} were given."
            )

    def n_masks(self, n_units: int) -> MaskCount:
        return MaskCount(n_units + 1, None)

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        sweep = Sweep(question, index, self.unit, self.absence)
        windows = self._windows(question.documents[index], sweep.n_units)
        values = sweep(~np.concatenate([np.zeros((1, sweep.n_units), dtype=bool), windows]))
        drops = (values[0] - values[1:]) / windows.sum(axis=1)
        # einsum, not a matrix product, whose last bits depend on memory alignment.
        scores = np.einsum("wu,w->u", windows.astype(np.float64), drops) / windows.sum(axis=0)
        facts = {"masks": sweep.n_evaluated, "windows": len(windows)}
        notes = sweep.notes
        if len(windows) == 1 and sweep.n_units > 1:
            alike = f"One window of width {self.width} covers every unit, so all scores are equal; lower width."
            notes = (*notes, Note(alike, "uninformative"))
        return self.explanation(question, index, scores, np.zeros_like(scores), facts).noted(notes)

    def _windows(self, document: Document, n_units: int) -> Bool[np.ndarray, "window unit"]:
        if document.picture is None or self.unit != "patch":
            return self._along(n_units)
        rows, columns = map(self._along, document.picture.grid)
        squares = rows[:, None, :, None] & columns[None, :, None, :]
        return squares.reshape(len(rows) * len(columns), n_units)

    def _along(self, length: int) -> Bool[np.ndarray, "window place"]:
        """The windows over a row of `length` positions; the last one reaches the end."""
        n_moves = -(-max(length - self.width, 0) // self.stride)
        start: Int[np.ndarray, "window 1"] = self.stride * np.arange(n_moves + 1)[:, None]
        place = np.arange(length)
        return (start <= place) & (place < start + self.width)
