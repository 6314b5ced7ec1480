"""Concentration of the scores on few units; needs no forward pass."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer

_NOT_FOR = "correctness: a method that names one random word is perfectly compact."
_NEEDS: frozenset[Offer] = frozenset()
_WANTS: frozenset[Want] = frozenset()


def _shares(evaluation: Evaluation) -> Float[np.ndarray, "unit"]:
    """Each unit's share of the sum of |scores|, the largest first."""
    sizes = np.sort(np.abs(evaluation.scores))[::-1]
    if sizes[0] == 0:
        raise Unsupported("All scores are zero, so their distribution is undefined.")
    return sizes / sizes.sum()


@final
@dataclass(frozen=True)
class Compactness(Metric):
    """Number of units that the explanation names: those with a score.

    The lecture's size of the explanation. Scores below `tolerance` times the largest count as none.
    """

    name: ClassVar[str] = "compactness"
    question: ClassVar[str] = "How many units does the explanation name?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "lecture, chapter 10.3: the size of the explanation, e.g. its number of features"
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < 1:
            raise BadInput(f"needs 0 ≤ tolerance < 1; {self.tolerance} was given.", self.name)

    def measure(self, evaluation: Evaluation) -> float:
        sizes = np.abs(evaluation.scores)
        return float((sizes > self.tolerance * sizes.max()).sum())


@final
@dataclass(frozen=True)
class Gini(Metric):
    """Gini index of |scores|: 0 if all are equal, near 1 if one unit has everything.

    Chalasani et al., 2020 (sparseness); Σ_i (2i − d − 1) |φ|_(i) / (d Σ |φ|) with |φ| ascending.
    """

    name: ClassVar[str] = "gini"
    question: ClassVar[str] = "Are the scores concentrated on few units?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Chalasani et al., 2020, arXiv:1810.06583"
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def measure(self, evaluation: Evaluation) -> float:
        ascending = _shares(evaluation)[::-1]
        d = len(ascending)
        return float((2 * np.arange(1, d + 1) - d - 1) @ ascending / d)


@final
@dataclass(frozen=True)
class Entropy(Metric):
    """Entropy of |scores| as shares, in nats: 0 if one unit has everything.

    Bhatt et al., 2020 (complexity): −Σ p_i log p_i with p = |φ| / Σ |φ|.
    """

    name: ClassVar[str] = "entropy"
    question: ClassVar[str] = "Are the scores concentrated on few units?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Bhatt et al., 2020, arXiv:2005.00631"
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS

    def measure(self, evaluation: Evaluation) -> float:
        shares = _shares(evaluation)
        shares = shares[shares > 0]
        return max(0.0, float(-(shares * np.log(shares)).sum()))


@final
@dataclass(frozen=True)
class UnitsForMass(Metric):
    """Share of units that together hold 90 % of the sum of |scores|."""

    name: ClassVar[str] = "units-for-mass"
    question: ClassVar[str] = "How many units must be read to see 90 % of the scores?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "heedful; a point on the cumulative curve of |scores|, like the Gini index"
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    mass: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.mass <= 1:
            raise BadInput(f"mass is {self.mass}; it must be above 0 and at most 1.")

    def measure(self, evaluation: Evaluation) -> float:
        shares = _shares(evaluation)
        n_needed = int(np.searchsorted(np.cumsum(shares), self.mass - 1e-12)) + 1
        return min(n_needed, len(shares)) / len(shares)
