"""Correlations of two rows of numbers."""

import numpy as np
from jaxtyping import Float


def spearman(one: Float[np.ndarray, "unit"], other: Float[np.ndarray, "unit"]) -> float:
    """Pearson's correlation of the ranks; NaN where one side is constant."""
    return pearson(ranks(one), ranks(other))


def pearson(one: Float[np.ndarray, "unit"], other: Float[np.ndarray, "unit"]) -> float:
    """Pearson's correlation; NaN where one side is constant."""
    # Less its mean, a constant need not be 0: the mean is rounded.
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    a, b = one - one.mean(), other - other.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def ranks(scores: Float[np.ndarray, "unit"]) -> Float[np.ndarray, "unit"]:
    """Ranks from 0; ties get their mean rank."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[place]


def kendall(one: Float[np.ndarray, "unit"], other: Float[np.ndarray, "unit"]) -> float:
    """Kendall's τ-b, which corrects for ties; NaN where one side is constant."""
    a, b = (np.sign(side[:, None] - side) for side in (one, other))
    size = np.sqrt((a * a).sum() * (b * b).sum())
    return float((a * b).sum() / size) if size else float("nan")
