"""The target's gradient at each embedding, reduced to one number per token, Section 4.1."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from heedful.document.note import Note
from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer

NEEDS: frozenset[Offer] = frozenset({"gradients"})
PASSES = {"forwards": 1, "backwards": 1}
_ROUNDING = 1e-4
ONLY_ROUNDING = Note(
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
    group: ClassVar[Group] = "gradients"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        gradients = question.gradient.gradients
        explanations = self.from_tokens(question, gradients.mean(axis=-1), PASSES)
        sizes = np.abs(gradients).mean(axis=-1)
        return [
            explanation.noted((ONLY_ROUNDING,))
            if np.abs(row.mean(axis=-1)).max() < _ROUNDING * size.max()
            else explanation
            for explanation, row, size in zip(explanations, gradients, sizes, strict=True)
        ]


@final
@dataclass(frozen=True)
class GradientL1(Explainer):
    """L1 norm of the gradient at each token: G-l1, Eq. (12).

    Differs from the lecture, which divides by d_e; rankings agree.
    """

    name: ClassVar[str] = "gradient-l1"
    group: ClassVar[Group] = "gradients"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False

    def explain_batch(self, question: Question) -> list[Explanation]:
        return self.from_tokens(question, np.abs(question.gradient.gradients).sum(axis=-1), PASSES)


@final
@dataclass(frozen=True)
class GradientL2(Explainer):
    """L2 norm of the gradient at each token: G-l2, Eq. (12).

    `squares="norm"` is the paper's norm; "mean" is the lecture's mean of squares. Rankings of tokens agree; those of
    units of several tokens, whose scores are sums, may differ.
    """

    name: ClassVar[str] = "gradient-l2"
    group: ClassVar[Group] = "gradients"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False

    squares: Literal["norm", "mean"] = "norm"

    def explain_batch(self, question: Question) -> list[Explanation]:
        squares = question.gradient.gradients**2
        rows = np.sqrt(squares.sum(axis=-1)) if self.squares == "norm" else squares.mean(axis=-1)
        return self.from_tokens(question, rows, PASSES)


@final
@dataclass(frozen=True)
class GradientXInput(Explainer):
    """Gradient times input at each token: G×I, e_t · ∇_{e_t} f (Denil et al., 2014).

    Coordinates of both signs cancel in the product, so a model in single precision leaves an error by rounding, which
    `error` bounds; in double precision it is 0.
    """

    name: ClassVar[str] = "gradient-x-input"
    group: ClassVar[Group] = "gradients"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True
    times_input: ClassVar[bool] = True
    summary_group: ClassVar[tuple[str, int] | None] = ("gradient", 1)

    def explain_batch(self, question: Question) -> list[Explanation]:
        e, gradient, rounding = question.gradient
        products = e * gradient
        return self.from_tokens(question, products.sum(axis=-1), PASSES, rounding * np.abs(products).sum(axis=-1))
