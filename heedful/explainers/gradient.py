"""The target's gradient at each embedding, made one number a token, Section 4.1; all four share one backward pass."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.aggregate import unit_scores
from heedful.explainers import Explainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer

NEEDS: frozenset[Offer] = frozenset({"gradients"})


@final
@dataclass(frozen=True)
class GradientMean(Explainer):
    """Mean of the gradient's coordinates: G-avg, from Eq. (12)."""

    name: ClassVar[str] = "gradient-mean"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        return _per_token(self, question, question.gradient.gradients.mean(axis=-1))


@final
@dataclass(frozen=True)
class GradientL1(Explainer):
    """L1 norm of the gradient: G-l1, from Eq. (12).

    Differs from the lecture, which divides by d_e; rankings agree.
    """

    name: ClassVar[str] = "gradient-l1"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False

    def explain_batch(self, question: Question) -> list[Explanation]:
        return _per_token(self, question, np.abs(question.gradient.gradients).sum(axis=-1))


@final
@dataclass(frozen=True)
class GradientL2(Explainer):
    """L2 norm of the gradient: G-l2, from Eq. (12).

    Differs from the lecture, which takes the mean of squares; rankings agree.
    """

    name: ClassVar[str] = "gradient-l2"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False

    def explain_batch(self, question: Question) -> list[Explanation]:
        return _per_token(self, question, np.sqrt((question.gradient.gradients**2).sum(axis=-1)))


@final
@dataclass(frozen=True)
class GradientXInput(Explainer):
    """Gradient times input: G×I, e_t · ∇_{e_t} f (Denil et al., 2014)."""

    name: ClassVar[str] = "gradient-x-input"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        e, gradient = question.gradient
        return _per_token(self, question, (e * gradient).sum(axis=-1))


def _per_token(explainer: Explainer, question: Question, rows: Float[np.ndarray, "batch token"]) -> list[Explanation]:
    explanations = []
    for index, (document, row) in enumerate(zip(question.documents, rows, strict=True)):
        scores, apart = unit_scores(document, explainer.unit, row)
        facts = {**apart, "forwards": 1, "backwards": 1}
        explanations.append(explainer.explanation(question, index, scores, np.zeros_like(scores), facts))
    return explanations
