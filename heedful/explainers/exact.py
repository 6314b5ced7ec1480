"""LIME, Shapley and Banzhaf values of the single-layer model, exact: no sampling, no variance."""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, final

import numpy as np
import torch

from heedful.document import SPECIAL
from heedful.errors import BadInput, Unsupported
from heedful.explainers import Explainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.single_layer import SingleLayer
from heedful.theory.exact import Exact, Game, banzhaf, lime, shapley

NEEDS: frozenset[Offer] = frozenset({"weights"})


@final
@dataclass(frozen=True)
class LimeExact(Explainer):
    """What LIME's coefficients are in expectation, without sampling.

    The settings are those of `lime`, whose mean over seeds it is, with removed units replaced by the unknown word.
    """

    name: ClassVar[str] = "lime-exact"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    n_samples: int = 5000
    kernel_width: float = 25.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if self.n_samples < 10 or not 0 < self.kernel_width < inf or not 0 <= self.ridge < inf:
            raise BadInput(
                "lime-exact needs n_samples of at least 10, a finite kernel_width > 0 and a finite ridge ≥ 0."
            )

    def explain_batch(self, question: Question) -> list[Explanation]:
        games = [_game(self, question, index, 2) for index in range(len(question.documents))]
        found = [lime(game, self.kernel_width, self.ridge, self.n_samples) for game in games]
        return _explanations(self, question, found)


@final
@dataclass(frozen=True)
class LimeLimit(Explainer):
    """LIME for infinitely many samples, a flat kernel and no ridge.

    The limit that Eq. (17) is about. Differs from Eq. (17), which gives only the part that sums to zero, times
    (d+1)/(d−1).
    """

    name: ClassVar[str] = "lime-limit"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        games = [_game(self, question, index, 2) for index in range(len(question.documents))]
        return _explanations(self, question, [lime(game, inf, 0.0, 10**18) for game in games])


@final
@dataclass(frozen=True)
class ShapleyExact(Explainer):
    """Shapley values with removed units replaced, exact; they sum to f(x) − f(empty)."""

    name: ClassVar[str] = "shapley-exact"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        games = [_game(self, question, index, 1) for index in range(len(question.documents))]
        return _explanations(self, question, [shapley(game) for game in games])


@final
@dataclass(frozen=True)
class BanzhafExact(Explainer):
    """Banzhaf values with removed units replaced, exact: every set equally likely."""

    name: ClassVar[str] = "banzhaf-exact"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        games = [_game(self, question, index, 1) for index in range(len(question.documents))]
        return _explanations(self, question, [banzhaf(game) for game in games])


def _game(explainer: Explainer, question: Question, index: int, least: int) -> Game:
    """The additive game of one document: per head a, b, A, B of every unit, and [CLS] and padding as the fixed part."""
    model, document = question.model, question.documents[index]
    if not isinstance(model, SingleLayer):
        raise Unsupported(f"{explainer.name} is about the single-layer model; this is a {type(model).__name__}.")
    n_units = document.n_units(explainer.unit)
    if n_units < least:
        raise BadInput(f"{explainer.name} needs at least {least} {explainer.unit}s; the document has {n_units}.")
    parts = model.parts(document, question.weights[index])
    (s, w), (s_h, w_h) = parts.in_place(), parts.all_unknown()
    # A constant taken from all scores of a head cancels in N/D.
    largest = torch.maximum(s.amax(dim=1), s_h.amax(dim=1))[:, None]
    g, g_h = (s - largest).exp(), (s_h - largest).exp()
    unit_of = np.full(s.shape[1], SPECIAL)
    unit_of[: len(document.ids)] = document.unit_of(explainer.unit)
    holder = torch.from_numpy(unit_of).to(g.device)
    inside = holder != SPECIAL

    def by_unit(x: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(len(x), n_units).index_add_(1, holder[inside], x[:, inside])

    fixed = [x[:, ~inside].sum(dim=1) for x in (g, g * w)]
    return Game(by_unit(g), by_unit(g_h), by_unit(g * w), by_unit(g_h * w_h), fixed[0], fixed[1])


def _explanations(explainer: Explainer, question: Question, found: list[Exact]) -> list[Explanation]:
    explanations = []
    for index, exact in enumerate(found):
        scores = exact.values.cpu().numpy()
        facts = {"quadrature_error": exact.error}
        explanations.append(explainer.explanation(question, index, scores, np.full_like(scores, exact.error), facts))
    return explanations
