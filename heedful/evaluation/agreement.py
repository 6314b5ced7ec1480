"""How alike two explanations are: a description, never a score (Neely et al., 2021)."""

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput
from heedful.explanation import Explanation
from heedful.statistics.correlation import spearman


def rank_correlation(one: Explanation, other: Explanation) -> float:
    """Spearman's ρ of the scores; of their absolute values where a method is unsigned; NaN where one is constant."""
    return spearman(*_comparable(one, other))


def top_overlap(one: Explanation, other: Explanation, n: int = 5) -> float:
    """The share of the n strongest units that both name."""
    n = min(n, len(one.scores))
    first, second = (set(np.argsort(-np.abs(s), kind="stable")[:n].tolist()) for s in _comparable(one, other))
    return len(first & second) / n


def _comparable(one: Explanation, other: Explanation) -> tuple[Float[np.ndarray, "unit"], Float[np.ndarray, "unit"]]:
    if one.units != other.units:
        raise BadInput("Only explanations of the same text at the same unit can be compared.")
    if one.signed and other.signed:
        return one.scores, other.scores
    return np.abs(one.scores), np.abs(other.scores)
