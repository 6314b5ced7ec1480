"""Whether dictionaries of several seeds found the same features: directions matched one to one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, final

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from heedful.errors import BadInput, brief, in_short
from heedful.features.dictionary import Dictionary
from heedful.statistics.intervals import mean_intervals, wilson
from heedful.statistics.quantity import Quantity


@final
@dataclass(frozen=True, eq=False)
class Match:
    """Two dictionaries whose directions are matched for the largest sum of |cos|. Intervals are over features."""

    first: int
    second: int
    cosines: Float[np.ndarray, "match"]
    """|cos| of every match, in the order of the features of the smaller dictionary."""

    __repr__ = brief

    @property
    def mean(self) -> Quantity:
        """The mean |cos|."""
        low, high = mean_intervals(self.cosines[None], (0.0, 1.0))
        return Quantity(float(self.cosines.mean()), float(low[0]), float(high[0]))

    def share_above(self, cosine: float) -> Quantity:
        """The share of matches whose |cos| is larger than that."""
        n_above, n = int((self.cosines > cosine).sum()), len(self.cosines)
        return Quantity(n_above / n, *wilson(n_above, n))


@final
@dataclass(frozen=True, eq=False)
class Stability:
    """How alike dictionaries are, pair by pair."""

    matches: tuple[Match, ...]

    @property
    def summary(self) -> str:
        """One line for every pair."""
        return "\n".join(
            f"dictionaries {match.first + 1} and {match.second + 1}: mean |cos| {match.mean}, "
            f"above 0.7 {match.share_above(0.7)}, above 0.9 {match.share_above(0.9)}"
            for match in self.matches
        )

    def __repr__(self) -> str:
        return self.summary

    def as_dict(self) -> dict[str, Any]:
        """The numbers of every pair, ready for JSON."""
        return {
            f"{match.first + 1}, {match.second + 1}": {
                "mean": match.mean.plain(),
                "above 0.7": match.share_above(0.7).plain(),
                "above 0.9": match.share_above(0.9).plain(),
            }
            for match in self.matches
        }


def stability(dictionaries: Sequence[Any]) -> Stability:
    """The |cos| between the directions of two or more dictionaries, matched one to one (Hungarian algorithm).

    A direction and its negative count as the same. Dead features are matched too, and lower the mean.
    """
    if not isinstance(dictionaries, Sequence) or len(dictionaries) < 2:
        raise BadInput("Stability compares at least two dictionaries; give a list of those of several seeds.")
    for number, own in enumerate(dictionaries):
        if not isinstance(own, Dictionary):
            raise BadInput(f"Stability compares dictionaries; number {number + 1} is {in_short(own)}.")
    places = {(own.d_e, own.card.model, own.card.part, own.card.layer) for own in dictionaries}
    if len(places) > 1:
        raise BadInput("The dictionaries belong to different layers or models; compare those of one layer.")
    directions = [own.directions for own in dictionaries]
    return Stability(
        tuple(Match(i, j, _matched(directions[i], directions[j])) for i, j in combinations(range(len(directions)), 2))
    )


def _matched(
    one: Float[np.ndarray, "feature d_e"], other: Float[np.ndarray, "other d_e"]
) -> Float[np.ndarray, "match"]:
    if len(one) > len(other):
        one, other = other, one
    cosines = np.abs(one @ other.T)
    return np.minimum(cosines[linear_sum_assignment(cosines, maximize=True)], 1.0)
