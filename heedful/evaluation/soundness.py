"""Which units matter to a prediction by logic, and whether a method gives scores to others."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Bool

from heedful.document import Absence
from heedful.errors import BadInput
from heedful.explainers import methods
from heedful.explainers.anchors import SamePrediction
from heedful.explainers.explain import explain
from heedful.explanation import Explanation
from heedful.family import setting_types
from heedful.models import Model
from heedful.models.question import ask

_MOST, _NOTHING = 14, 1e-6


@final
@dataclass(frozen=True)
class Soundness:
    """An explanation, and which of its units are in a minimal set that keeps the prediction whatever the others are."""

    explanation: Explanation
    relevant: Bool[np.ndarray, "unit"]

    @property
    def unsound(self) -> tuple[str, ...]:
        """Irrelevant units with a score: above a millionth of the largest and, if sampled, beyond its interval."""
        sizes = np.abs(self.explanation.scores)
        error = np.zeros_like(sizes) if self.explanation.error is None else self.explanation.error
        scored = ~self.relevant & (sizes > np.maximum(error, _NOTHING * sizes.max()))
        return tuple(unit for unit, has in zip(self.explanation.units, scored, strict=True) if has)


def soundness(
    model: Model, text: Any, method: str = "shapley-sampled", absence: Absence = "replace", **settings: Any
) -> Soundness:
    """Whether a method gives scores to units that are irrelevant to the prediction, from all masks of a short text.

    A set of units is sufficient if the prediction is the same on every mask that keeps it, and relevant is what is in
    a minimal sufficient set; all 2^d masks are evaluated. Shapley values may give irrelevant units a score.

    Marques-Silva & Huang, 2023, arXiv:2307.07514. Differs from the source: other values of a feature are its removal,
    by `absence`.
    """
    kind = methods().get(method)
    own = {"absence": absence} if kind is not None and "absence" in setting_types(kind) else {}
    explanation = explain(model, text, method, **own, **settings)
    d = len(explanation.units)
    if d > _MOST:
        raise BadInput(f"soundness evaluates every mask of at most {_MOST} units; the text has {d}.")
    codes = np.arange(2**d)
    keep = (codes[:, None] >> np.arange(d)) & 1 == 1
    question = ask(model, [text], explanation.target)
    sufficient = SamePrediction(question, 0, explanation.unit, absence, 2**d)(keep)
    for bit in range(d):
        # A set is sufficient if every set that contains it keeps the prediction.
        pairs = sufficient.reshape(-1, 2, 2**bit)
        pairs[:, 0] &= pairs[:, 1]
    smaller = np.array([sufficient[codes & ~(1 << bit)] & keep[:, bit] for bit in range(d)])
    return Soundness(explanation, keep[sufficient & ~smaller.any(axis=0)].any(axis=0))
