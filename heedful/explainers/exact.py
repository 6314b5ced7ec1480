"""LIME, Shapley and Banzhaf values of models that pool by attention, exact: no sampling, no variance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.errors import BadInput
from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.exact_game import games_of
from heedful.theory.exact import Exact, banzhaf, lime, lime_limit, shapley
from heedful.theory.game import Games

NEEDS: frozenset[Offer] = frozenset({"pooling"})


@final
@dataclass(frozen=True)
class LimeExact(Explainer):
    """LIME's expected coefficients, computed exactly instead of sampled.

    The solution of LIME's expected normal equations; the mean of `lime` with these settings over many seeds differs
    from it by O(1/n_samples). `error` bounds the error of the quadrature; nodes are added until it is below
    `tolerance`, as far as double precision allows.
    """

    name: ClassVar[str] = "lime-exact"
    group: ClassVar[Group] = "surrogates"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "joint"
    joint_rank: ClassVar[int | None] = 1
    summary_group: ClassVar[tuple[str, int] | None] = ("lime", 1)

    n_samples: int = 5000
    absence: Absence = "replace"
    kernel_width: float = 25.0
    ridge: float = 1.0
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        _check(self.name, self.absence, self.tolerance)
        if self.n_samples < 10 or not 1e-6 <= self.kernel_width <= 1e6 or not 0 <= self.ridge < inf:
            raise BadInput(
                f"{self.name} needs n_samples of at least 10, a kernel_width from 1e-6 to 1e6 and a finite ridge ≥ 0."
            )

    def explain_batch(self, question: Question) -> list[Explanation]:
        games = _games(self, question, self.absence, least=2)
        result = lime(games, self.kernel_width, self.ridge, self.n_samples, self.tolerance)
        if not result.values.isfinite().all():
            raise BadInput(
                f"With kernel_width {self.kernel_width:g} the surrogate is not defined; raise kernel_width or ridge."
            )
        return _explanations(self, question, result, self.tolerance)


@final
@dataclass(frozen=True)
class LimeLimit(Explainer):
    """LIME with infinitely many samples, a flat kernel and no ridge, exact.

    The limit of Eq. (17). Differs from Eq. (17), which gives only the part that sums to zero, times (d+1)/(d−1).
    """

    name: ClassVar[str] = "lime-limit"
    group: ClassVar[Group] = "surrogates"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "joint"
    summary_group: ClassVar[tuple[str, int] | None] = ("lime", 2)

    absence: Absence = "replace"
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        _check(self.name, self.absence, self.tolerance)

    def explain_batch(self, question: Question) -> list[Explanation]:
        games = _games(self, question, self.absence, least=2)
        return _explanations(self, question, lime_limit(games, self.tolerance), self.tolerance)


@final
@dataclass(frozen=True)
class ShapleyExact(Explainer):
    """Exact Shapley values; they sum to f(x) − f(empty).

    `absence` is replace, replace:WORD, mask, mean or zero. Reference: Owen, 1972; docs/exact.md.
    """

    name: ClassVar[str] = "shapley-exact"
    group: ClassVar[Group] = "Shapley values"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "joint"
    joint_rank: ClassVar[int | None] = 2
    summary_group: ClassVar[tuple[str, int] | None] = ("shapley", 1)

    absence: Absence = "replace"
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        _check(self.name, self.absence, self.tolerance)

    def explain_batch(self, question: Question) -> list[Explanation]:
        games = _games(self, question, self.absence, least=1)
        result = shapley(games, self.tolerance)
        gaps = result.values.sum(dim=1) - (games.whole - games.empty)
        facts = [
            {"empty": empty, "efficiency_gap": gap}
            for empty, gap in zip(games.empty.tolist(), gaps.tolist(), strict=True)
        ]
        return _explanations(self, question, result, self.tolerance, facts)


@final
@dataclass(frozen=True)
class BanzhafExact(Explainer):
    """Exact Banzhaf values: mean effect of a unit over all subsets of the others.

    `absence` is replace, replace:WORD, mask, mean or zero. Reference: docs/exact.md.
    """

    name: ClassVar[str] = "banzhaf-exact"
    group: ClassVar[Group] = "Shapley values"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "joint"
    joint_rank: ClassVar[int | None] = 6
    summary_group: ClassVar[tuple[str, int] | None] = ("shapley", 4)

    absence: Absence = "replace"

    def __post_init__(self) -> None:
        _check(self.name, self.absence, 1.0)

    def explain_batch(self, question: Question) -> list[Explanation]:
        games = _games(self, question, self.absence, least=1)
        return _explanations(self, question, banzhaf(games), 1e-6)


def _check(name: str, absence: Absence, tolerance: float) -> None:
    check_absence(absence)
    if not 0 < tolerance < inf:
        raise BadInput(f"{name} needs a tolerance above 0; {tolerance:g} was given.")


def _games(explainer: Explainer, question: Question, absence: Absence, least: int) -> Games:
    return games_of(question, explainer.unit, absence, least, explainer.name)


def _explanations(
    explainer: Explainer,
    question: Question,
    result: Exact,
    tolerance: float,
    facts: Sequence[Mapping[str, float]] | None = None,
) -> list[Explanation]:
    values = result.values.cpu().numpy()
    explanations = []
    for index, (document, error) in enumerate(zip(question.documents, result.error.tolist(), strict=True)):
        scores = values[index, : document.n_units(explainer.unit)]
        own_facts = {**(facts[index] if facts else {}), "quadrature_error": error}
        explanation = explainer.explanation(question, index, scores, np.full_like(scores, error), own_facts)
        if error > tolerance:
            inexact = f"The scores may be off by {error:.2g}, more than the tolerance of {tolerance:g}."
            explanation = explanation.noted((Note(inexact, "inexact"),))
        explanations.append(explanation)
    return explanations
