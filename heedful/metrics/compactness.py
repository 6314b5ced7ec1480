"""On how few units the scores lie; nothing is asked of the model."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer

_NOT_FOR = "truth: a method that names one word at random is as compact as can be."
_NEEDS: frozenset[Offer] = frozenset()
_WANTS: frozenset[Want] = frozenset()


def _shares(evaluation: Evaluation) -> Float[np.ndarray, "unit"]:
    """Each unit's share of the sum of |scores|, the largest first."""
    sizes = np.sort(np.abs(evaluation.scores))[::-1]
    if sizes[0] == 0:
        raise Unsupported("All scores are zero, so there is nothing to be compact.")
    return sizes / sizes.sum()


@final
@dataclass(frozen=True)
class Gini(Metric):
    """The Gini index of |scores|: 0 is all equal, near 1 is one unit alone.

    Chalasani et al., 2020 (sparseness); Σ_i (2i − d − 1) |φ|_(i) / (d Σ |φ|) with |φ| ascending.
    """

    name: ClassVar[str] = "gini"
    question: ClassVar[str] = "Does it name few units?"
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
    """The entropy of |scores| as shares, in nats: 0 is one unit alone.

    Bhatt et al., 2020 (complexity): −Σ p_i log p_i with p = |φ| / Σ |φ|.
    """

    name: ClassVar[str] = "entropy"
    question: ClassVar[str] = "Does it name few units?"
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
    """The share of units that hold 90 % of the sum of |scores|."""

    name: ClassVar[str] = "units-for-mass"
    question: ClassVar[str] = "How many units must be read to have nearly all of it?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "ours; the reading of a cumulative curve of |scores|, as Gini's index has it"
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    mass: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.mass <= 1:
            raise BadInput(f"mass is a share, above 0 and at most 1; {self.mass} was given.")

    def measure(self, evaluation: Evaluation) -> float:
        shares = _shares(evaluation)
        n_needed = int(np.searchsorted(np.cumsum(shares), self.mass - 1e-12)) + 1
        return min(n_needed, len(shares)) / len(shares)
