"""f of one document with some of its units, for all who measure on it."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document import Absence, Unit
from heedful.models.question import Question
from heedful.perturb.sweep import Sweep
from heedful.target import Scale


@final
@dataclass(frozen=True, eq=False)
class Answers:
    """The target of a question's first document on any masks; a question that keeps answers asks none twice."""

    question: Question
    unit: Unit

    def __call__(
        self, keep: Bool[np.ndarray, "mask unit"], absence: Absence = "replace", scale: Scale | None = None
    ) -> Float[np.ndarray, "mask"]:
        """The target on every mask; on another scale than the question's, if one is named."""
        return Sweep(self._on(scale), 0, self.unit, absence)(keep)

    def whole(self, absence: Absence = "replace", scale: Scale | None = None) -> float:
        """f(x): nothing is gone."""
        return float(self(np.ones((1, self.n_units), dtype=bool), absence, scale)[0])

    def empty(self, absence: Absence = "replace", scale: Scale | None = None) -> float:
        """f(∅): everything is gone."""
        return float(self(np.zeros((1, self.n_units), dtype=bool), absence, scale)[0])

    def one_out(self, absence: Absence = "replace", scale: Scale | None = None) -> Float[np.ndarray, "unit"]:
        """What the target loses when each unit goes alone."""
        return self.whole(absence, scale) - self(~np.eye(self.n_units, dtype=bool), absence, scale)

    @property
    def n_units(self) -> int:
        return self.question.documents[0].n_units(self.unit)

    def _on(self, scale: Scale | None) -> Question:
        target = self.question.targets[0]
        if scale is None or target.scale == scale:
            return self.question
        request = replace(target, scale=scale)
        other = replace(self.question, wanted=self.question.wanted._replace(request=request, against=None, scale=scale))
        other.__dict__["logits"] = self.question.logits
        return other
