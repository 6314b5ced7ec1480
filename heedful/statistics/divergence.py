"""Distances of distributions: the Jensen–Shannon divergence and the total variation distance."""

import numpy as np
from jaxtyping import Float
from scipy.special import entr


def jensen_shannon(
    one: Float[np.ndarray, "*row outcome"], other: Float[np.ndarray, "*row outcome"]
) -> Float[np.ndarray, "*row"]:
    """The Jensen–Shannon divergence of distributions, in nats; at most ln 2."""
    middle = entr((one + other) / 2).sum(axis=-1)
    return np.maximum(middle - (entr(one).sum(axis=-1) + entr(other).sum(axis=-1)) / 2, 0.0)


def total_variation(
    one: Float[np.ndarray, "*row outcome"], other: Float[np.ndarray, "*row outcome"]
) -> Float[np.ndarray, "*row"]:
    """The total variation distance of distributions: half the sum of absolute differences."""
    return np.abs(one - other).sum(axis=-1) / 2
