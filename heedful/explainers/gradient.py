"""The target's gradient at each embedding, reduced to one number per token, Section 4.1."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from heedful.document.note import Note
from heedful.explainers import Explainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer

NEEDS: frozenset[Offer] = frozenset({"gradients"})
PASSES = {"forwards": 1, "backwards": 1}
_ROUNDING = 1e-4
_NOTHING = Note(
    "All scores are zero up to rounding: this model's first layer norm ignores a constant added to every coordinate.",
    "uninformative",
)


@final
@dataclass(frozen=True)
class GradientMean(Explainer):
    """Mean of the gradient's coordinates at each token: G-avg, Eq. (12).

    If the model's first operation is a layer norm (BERT and most others), all scores are zero up to rounding: a layer
    norm ignores a constant added to every coordinate. A note says so.
    """

    name: ClassVar[str] = "gradient-mean"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        gradients = question.gradient.gradients
        explanations = self.from_tokens(question, gradients.mean(axis=-1), PASSES)
        sizes = np.abs(gradients).mean(axis=-1)
        return [
            explanation.noted((_NOTHING,)) if np.abs(row.mean(axis=-1)).max() < _ROUNDING * size.max() else explanation
            for explanation, row, size in zip(explanations, gradients, sizes, strict=True)
        ]


@final
@dataclass(frozen=True)
class GradientL1(Explainer):
    """L1 norm of the gradient at each token: G-l1, Eq. (12).

    Differs from the lecture, which divides by d_e; rankings agree.
    """

    name: ClassVar[str] = "gradient-l1"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False

    def explain_batch(self, question: Question) -> list[Explanation]:
        return self.from_tokens(question, np.abs(question.gradient.gradients).sum(axis=-1), PASSES)


@final
@dataclass(frozen=True)
class GradientL2(Explainer):
    """L2 norm of the gradient at each token: G-l2, Eq. (12).

    Differs from the lecture, which takes the mean of squares; rankings agree.
    """

    name: ClassVar[str] = "gradient-l2"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False

    def explain_batch(self, question: Question) -> list[Explanation]:
        return self.from_tokens(question, np.sqrt((question.gradient.gradients**2).sum(axis=-1)), PASSES)


@final
@dataclass(frozen=True)
class GradientXInput(Explainer):
    """Gradient times input at each token: G×I, e_t · ∇_{e_t} f (Denil et al., 2014)."""

    name: ClassVar[str] = "gradient-x-input"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True
    times_input: ClassVar[bool] = True
    summary_group: ClassVar[tuple[str, int] | None] = ("gradient", 1)

    def explain_batch(self, question: Question) -> list[Explanation]:
        e, gradient = question.gradient
        return self.from_tokens(question, (e * gradient).sum(axis=-1), PASSES)
