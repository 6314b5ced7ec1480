"""The target of one document on any masks, for metrics."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document import Absence, Unit
from heedful.models.question import Question
from heedful.perturb.sweep import Sweep
from heedful.target import Scale

Masks = Literal["whole", "empty", "one out"]
_MASKS: dict[Masks, Callable[[int], Bool[np.ndarray, "mask unit"]]] = {
    "whole": lambda n_units: np.ones((1, n_units), dtype=bool),
    "empty": lambda n_units: np.zeros((1, n_units), dtype=bool),
    "one out": lambda n_units: ~np.eye(n_units, dtype=bool),
}


@final
@dataclass(frozen=True, eq=False)
class DocumentValues:
    """The target of a question's first document on any masks; a mask whose value is stored is not evaluated again."""

    question: Question
    unit: Unit
    _values: dict[tuple[Masks, Absence, Scale | None], Float[np.ndarray, "mask"]] = field(
        default_factory=dict, init=False, repr=False
    )

    def __call__(
        self, keep: Bool[np.ndarray, "mask unit"], absence: Absence = "replace", scale: Scale | None = None
    ) -> Float[np.ndarray, "mask"]:
        """The target on every mask, on the question's scale or another one."""
        return Sweep(self._question_on(scale), 0, self.unit, absence)(keep)

    def whole(self, absence: Absence = "replace", scale: Scale | None = None) -> float:
        """f(x): nothing is removed."""
        return float(self._once("whole", absence, scale)[0])

    def empty(self, absence: Absence = "replace", scale: Scale | None = None) -> float:
        """f(∅): everything is removed."""
        return float(self._once("empty", absence, scale)[0])

    def one_out(self, absence: Absence = "replace", scale: Scale | None = None) -> Float[np.ndarray, "unit"]:
        """The drop in the target when each unit alone is removed."""
        return self.whole(absence, scale) - self._once("one out", absence, scale)

    def _once(self, masks: Masks, absence: Absence, scale: Scale | None) -> Float[np.ndarray, "mask"]:
        """The values on masks that most metrics request, looked up once."""
        key = (masks, absence, scale)
        if key not in self._values:
            self._values[key] = self(_MASKS[masks](self.n_units), absence, scale)
        elif self.question.mask_values is not None:
            self.question.mask_values.n_requested += len(self._values[key])
        return self._values[key]

    @property
    def n_units(self) -> int:
        """The number of units of the document."""
        return self.question.documents[0].n_units(self.unit)

    def _question_on(self, scale: Scale | None) -> Question:
        target = self.question.targets[0]
        if scale is None or target.scale == scale:
            return self.question
        wanted = self.question.wanted._replace(request=replace(target, scale=scale), against=None, scale=scale)
        return replace(self.question, wanted=wanted)
