"""Intervals of means over documents, paired comparisons, and their correction."""

import numpy as np
from jaxtyping import Float

N_RESAMPLES = 4_000
N_FLIPS = 99_999
"""So many that a difference can still be told after a correction for some thousand comparisons."""

_PORTION = 2_000_000
"""Numbers that are held at a time."""


def means(values: Float[np.ndarray, "row document"]) -> Float[np.ndarray, "row"]:
    """The mean of every row over the documents where there is a number; NaN where there is none."""
    there = ~np.isnan(values)
    n = there.sum(axis=1)
    sums = np.where(there, values, 0.0).sum(axis=1)
    return np.where(n > 0, sums / np.maximum(n, 1), np.nan)


def intervals(
    values: Float[np.ndarray, "row document"], seed: int, level: float = 0.95
) -> tuple[Float[np.ndarray, "row"], Float[np.ndarray, "row"]]:
    """Bootstrap intervals of the means over documents, the same draws for every row (Efron, 1979, percentiles).

    Of fewer than two numbers there is none.
    """
    n_documents = values.shape[1]
    chance = np.random.default_rng(seed)
    there, known = ~np.isnan(values), np.nan_to_num(values, nan=0.0)
    found = np.full((N_RESAMPLES, len(values)), np.nan)
    at_once = max(1, _PORTION // n_documents)
    for start in range(0, N_RESAMPLES, at_once):
        size = min(at_once, N_RESAMPLES - start)
        drawn = chance.multinomial(n_documents, np.full(n_documents, 1 / n_documents), size=size).astype(np.float64)
        n = drawn @ there.T
        found[start : start + size] = np.where(n > 0, drawn @ known.T / np.maximum(n, 1), np.nan)
    tail = (1 - level) / 2
    low, high = np.full(len(values), np.nan), np.full(len(values), np.nan)
    for row in np.flatnonzero(there.sum(axis=1) > 1):
        low[row], high[row] = np.nanquantile(found[:, row], [tail, 1 - tail])
    return low, high


def sign_flips(differences: Float[np.ndarray, "row document"], seed: int) -> Float[np.ndarray, "row"]:
    """Two-sided p-values that paired differences have mean 0, by flipping the signs of documents (Fisher, 1935).

    The p-value counts the flips whose mean is at least as far from 0, the differences themselves among them; a document
    without a number counts as no difference.
    """
    given = np.nan_to_num(differences, nan=0.0)
    chance = np.random.default_rng(seed)
    # Rounding must not make a flip that repeats the sum look smaller than it.
    bound = np.abs(given.sum(axis=1)) - 1e-9 * np.abs(given).sum(axis=1)
    n_as_far, n_done = np.ones(len(given)), 0
    while n_done < N_FLIPS:
        size = min(max(1, _PORTION // given.shape[1]), N_FLIPS - n_done)
        signs = 2.0 * chance.integers(0, 2, size=(size, given.shape[1])) - 1.0
        n_as_far += (np.abs(signs @ given.T) >= bound).sum(axis=0)
        n_done += size
    return n_as_far / (N_FLIPS + 1)


def holm(p: Float[np.ndarray, "row"]) -> Float[np.ndarray, "row"]:
    """P-values corrected for their number: the chance of any false alarm stays below the level (Holm, 1979)."""
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(steps)
    return corrected
