"""Which scores are equal up to rounding, so that rounding ranks nothing."""

import numpy as np
from jaxtyping import Float

NOISE = 1e-6
"""Differences up to this share of the output may be rounding of a model in single precision; they decide nothing."""

_CLOSE = 1e-12
"""Scores that differ by at most this share of the largest are equal."""


def settled(scores: Float[np.ndarray, "unit"], floor: float = 0.0, close: float = _CLOSE) -> Float[np.ndarray, "unit"]:
    """The scores with 0 where they are at most `floor`, and with one number for scores that differ by rounding only.

    For ranks: neighbours in order of size that differ by no more than `close` of the largest score become equal.
    """
    kept = np.where(np.abs(scores) <= floor, 0.0, scores)
    order = np.argsort(kept, kind="stable")
    ascending = kept[order]
    starts = np.diff(ascending, prepend=-np.inf) > close * np.abs(kept).max(initial=0.0)
    result = np.empty_like(kept)
    result[order] = ascending[starts][np.cumsum(starts) - 1] if len(kept) else ascending
    return result
