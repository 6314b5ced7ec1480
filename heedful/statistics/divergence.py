"""Distances of distributions: the Jensen–Shannon divergence and the total variation distance."""

import numpy as np
from jaxtyping import Float
from scipy.special import entr


def jensen_shannon(
    one: Float[np.ndarray, "*#row outcome"], other: Float[np.ndarray, "*#row outcome"]
) -> Float[np.ndarray, "*_"]:
    """The Jensen–Shannon divergence of distributions, in nats; at most ln 2."""
    middle = entr((one + other) / 2).sum(axis=-1)
    ends = entr(one).sum(axis=-1) + entr(other).sum(axis=-1)
    return np.asarray(np.maximum(middle - ends / 2, 0.0))


def total_variation(
    one: Float[np.ndarray, "*#row outcome"], other: Float[np.ndarray, "*#row outcome"]
) -> Float[np.ndarray, "*_"]:
    """The total variation distance of distributions: half the sum of absolute differences."""
    return np.asarray(np.abs(one - other).sum(axis=-1) / 2)
