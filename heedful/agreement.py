"""How alike two explanations are: a description, never a score (Neely et al., 2021)."""

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput
from heedful.explanation import Explanation


def rank_correlation(one: Explanation, other: Explanation) -> float:
    """Spearman's ρ of the scores; of their absolute values where a method is unsigned; NaN where one is constant."""
    return spearman(*_comparable(one, other))


def spearman(one: Float[np.ndarray, "unit"], other: Float[np.ndarray, "unit"]) -> float:
    """Pearson's correlation of the ranks; NaN where one side is constant."""
    return pearson(_ranks(one), _ranks(other))


def pearson(one: Float[np.ndarray, "unit"], other: Float[np.ndarray, "unit"]) -> float:
    """Pearson's correlation; NaN where one side is constant."""
    # Less its mean, a constant need not be 0: the mean is rounded.
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    a, b = one - one.mean(), other - other.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


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


def _ranks(scores: Float[np.ndarray, "unit"]) -> Float[np.ndarray, "unit"]:
    """Ranks from 0; equal scores share the mean of theirs."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[place]
