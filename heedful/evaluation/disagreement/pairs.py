"""Two methods side by side: on which units they disagree most, and which term is behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.errors import brief
from heedful.evaluation.agreement import rank_correlation
from heedful.evaluation.disagreement.accounts import Terms, difference_terms
from heedful.explainers import Explainer, noise_floor
from heedful.explanation import Explanation
from heedful.family import members
from heedful.statistics.ties import settled

MOST = 3
"""The number of units that a pair lists."""


@final
@dataclass(frozen=True)
class UnitGap:
    """A unit on which two methods differ.

    `places` are its ranks, 1 being the first; `strengths` its scores divided by the largest of each method; `share` its
    part of Σ (difference of ranks)², which lowers Spearman's ρ. `terms` sum to the difference of the two scores and are
    empty if they are not known; `term` is the largest of them.
    """

    unit: int
    word: str
    places: tuple[float, float]
    strengths: tuple[float, float]
    share: float
    terms: Mapping[str, float]
    term: str | None

    __repr__ = brief


@final
@dataclass(frozen=True)
class MethodPair:
    """Two methods, the rank correlation of their scores, and the units on which they differ most."""

    one: str
    other: str
    correlation: float
    units: tuple[UnitGap, ...]

    __repr__ = brief


def pairs(explanations: Sequence[Explanation], accounts: Mapping[str, Terms]) -> tuple[MethodPair, ...]:
    """Every two methods and the units that lower their rank correlation most.

    Scores are compared as `agreement` compares them: by size where either method is unsigned.
    """
    compared = []
    for one, other in combinations(explanations, 2):
        seen = _Seen.of(one, other, accounts, one.signed and other.signed)
        gaps = (seen.places[0] - seen.places[1]) ** 2
        chosen = [unit for unit in np.argsort(-gaps, kind="stable")[:MOST].tolist() if gaps[unit] > 0]
        units = tuple(seen.gap(unit) for unit in chosen)
        compared.append(MethodPair(one.method, other.method, rank_correlation(one, other), units))
    return tuple(compared)


def widest(explanations: Sequence[Explanation], accounts: Mapping[str, Terms], n: int) -> tuple[MethodPair, ...]:
    """The n units on which two methods with accounts differ most, each with these two methods.

    Strengths are compared as they are drawn: unsigned scores as if all units were evidence for the target.
    """
    accounted = representatives([explanation for explanation in explanations if explanation.method in accounts])
    if len(accounted) < 2:
        return ()
    # Methods that differ only by a factor differ by rounding, which must not decide.
    strengths = np.stack([_strengths(explanation.scores) for explanation in accounted]).round(9)
    low, high = strengths.argmin(axis=0), strengths.argmax(axis=0)
    every = np.arange(strengths.shape[1])
    gaps = strengths[high, every] - strengths[low, every]
    chosen = []
    for unit in np.argsort(-gaps, kind="stable")[:n].tolist():
        if gaps[unit] > 0:
            one, other = (accounted[index] for index in sorted((int(low[unit]), int(high[unit]))))
            seen = _Seen.of(one, other, accounts, signed=True)
            chosen.append(MethodPair(one.method, other.method, rank_correlation(one, other), (seen.gap(unit),)))
    return tuple(chosen)


@final
@dataclass(frozen=True, eq=False)
class _Seen:
    """All units with their ranks and strengths according to two methods."""

    words: tuple[str, ...]
    places: tuple[Float[np.ndarray, "unit"], Float[np.ndarray, "unit"]]
    strengths: tuple[Float[np.ndarray, "unit"], Float[np.ndarray, "unit"]]
    terms: Terms

    @staticmethod
    def of(one: Explanation, other: Explanation, accounts: Mapping[str, Terms], signed: bool) -> "_Seen":
        a, b = (e.scores if signed else np.abs(e.scores) for e in (one, other))
        first, second = (settled(x, noise_floor(e, abs(e.output))) for x, e in ((a, one), (b, other)))
        both = one.method in accounts and other.method in accounts
        terms = difference_terms(accounts[one.method], accounts[other.method], signed) if both else {}
        return _Seen(one.units, (rank_positions(first), rank_positions(second)), (_strengths(a), _strengths(b)), terms)

    def gap(self, unit: int) -> UnitGap:
        own = {name: float(term[unit]) for name, term in self.terms.items()}
        gaps = (self.places[0] - self.places[1]) ** 2
        return UnitGap(
            unit=unit,
            word=self.words[unit],
            places=(float(self.places[0][unit]), float(self.places[1][unit])),
            strengths=(float(self.strengths[0][unit]), float(self.strengths[1][unit])),
            share=float(gaps[unit] / gaps.sum()) if gaps.any() else 0.0,
            terms=own,
            term=max(own, key=lambda name: abs(own[name])) if any(own.values()) else None,
        )


def representatives(explanations: Sequence[Explanation]) -> list[Explanation]:
    """The first method of each `summary_group`; all methods if they are of one group."""
    catalogue = members("heedful.explainers", Explainer)
    places = [(catalogue[e.method].summary_group, e) for e in explanations if e.method in catalogue]
    ranked = sorted([(place, e) for place, e in places if place is not None], key=lambda pair: pair[0])
    first: dict[str, Explanation] = {}
    for (group, _), explanation in ranked:
        first.setdefault(group, explanation)
    return list(first.values()) if len(first) > 1 else list(explanations)


def rank_positions(scores: Float[np.ndarray, "unit"]) -> Float[np.ndarray, "unit"]:
    """The rank of each unit from the highest score down, counted from 1; equal scores share their mean rank."""
    _, back, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[back]


def _strengths(scores: Float[np.ndarray, "unit"]) -> Float[np.ndarray, "unit"]:
    return scores / (np.abs(scores).max(initial=0.0) or 1.0)
