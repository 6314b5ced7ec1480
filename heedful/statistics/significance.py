"""Means over texts, p-values of paired comparisons, and their correction for the number of comparisons."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int8
from scipy import special

from heedful.statistics.intervals import hall, text_moments

N_FLIPS = 9_999
"""Maximum number of random sign flips. The smallest p-value is 1e-4, and 5e-5 on one side, which survives a correction
for 999 comparisons."""

EXACT_TEXTS = 17
"""Up to this number of texts all sign flips are enumerated; the smallest p-value is 2 · 2⁻ⁿ."""

ENOUGH = 400
"""Once this many flips are as extreme as the data, the p-value has a relative error of 5 % and no more are drawn."""

_FLIPS_AT_ONCE = 2_500
"""Always the same, so that the p-value of a row does not depend on which other rows are tested with it."""
_AT_ONCE = 2_000_000
"""The maximum number of values in memory at a time."""


def means(values: Float[np.ndarray, "row document"]) -> Float[np.ndarray, "row"]:
    """The mean of every row over the documents that have a value; NaN where none has."""
    present = ~np.isnan(values)
    n = present.sum(axis=1)
    sums = np.where(present, values, 0.0).sum(axis=1)
    return np.where(n > 0, sums / np.maximum(n, 1), np.nan)


def mean_p_values(
    differences: Float[np.ndarray, "row document"],
    worst: float | Float[np.ndarray, "row"],
    seed: int,
    level: float = 0.05,
) -> Float[np.ndarray, "row"]:
    """One-sided p-values that the mean of paired differences is 0 or on the other side than the one observed.

    The largest of four, because each of them fails where another holds:

    - Student's t and Hall's (1992) t, corrected for skewness, as in `mean_intervals`: the second holds where few texts
      have large differences;
    - sign flips (Fisher, 1935), exact for symmetric differences of any distribution;
    - (1 + |mean| / worst)⁻ⁿ, where `worst` is the largest loss that one text can bring. A loss so rare that it makes
      the mean 0 is absent from n texts with this probability, whatever they show (Bahadur & Savage, 1956).

    Signs are flipped only where the other three are below `level`. 1 where no document has a value, or the mean is 0.
    """
    n, mean, deviation, skewness, usable = text_moments(differences)
    x, sign = np.abs(mean) / deviation, np.where(mean < 0, -1.0, 1.0)
    statistic = np.minimum(x, hall(x, sign * skewness, n))
    p = np.where(usable, special.stdtr(n - 2, -np.sqrt(n) * statistic), 0.0)
    present = (~np.isnan(differences)).sum(axis=1)
    # A loss of nothing cannot be rare enough.
    gain = np.abs(mean) / np.maximum(worst, 1e-300)
    p = np.maximum(p, (1.0 + gain) ** -present.astype(np.float64))
    rows = np.flatnonzero(p < level)
    if len(rows):
        p[rows] = np.maximum(p[rows], sign_flips(differences[rows], seed) / 2)
    return np.where((present == 0) | (mean == 0), 1.0, p)


def sign_flips(differences: Float[np.ndarray, "row document"], seed: int) -> Float[np.ndarray, "row"]:
    """Two-sided p-values that paired differences have mean 0, by flipping the signs of documents (Fisher, 1935).

    A p-value is the share of flips whose sum is at least as far from 0, the differences themselves among them; a
    document without a value counts as no difference. Exact for few texts (`EXACT_TEXTS`). For more, flips are drawn
    until enough are as extreme (Besag & Clifford, 1991) or `N_FLIPS` were drawn, so that no p-value is below 1e-4.
    """
    values = np.nan_to_num(differences, nan=0.0)
    # Rounding must not make a flip that repeats the sum look smaller than it.
    bound = np.abs(values.sum(axis=1)) - 1e-9 * np.abs(values).sum(axis=1)
    return _exact(values, bound) if values.shape[1] <= EXACT_TEXTS else _drawn(values, bound, seed)


def _exact(values: Float[np.ndarray, "row document"], bound: Float[np.ndarray, "row"]) -> Float[np.ndarray, "row"]:
    """The share of all sign flips that are as extreme. A flip and its opposite are equally extreme."""
    signs = _all_signs(values.shape[1])
    at_once = max(1, _AT_ONCE // len(signs))
    parts = [slice(start, start + at_once) for start in range(0, len(values), at_once)]
    return np.concatenate([(np.abs(signs @ values[part].T) >= bound[part]).mean(axis=0) for part in parts])


@lru_cache(maxsize=2)
def _all_signs(n: int) -> Float[np.ndarray, "flip document"]:
    """Every choice of n signs whose last is +."""
    flips = np.arange(2 ** (n - 1))[:, None] >> np.arange(n)
    return 1.0 - 2.0 * (flips & 1)


def _drawn(
    values: Float[np.ndarray, "row document"], bound: Float[np.ndarray, "row"], seed: int
) -> Float[np.ndarray, "row"]:
    """P-values from random sign flips, the same flips for every row that still needs some."""
    n_extreme, n_flips = np.ones(len(values)), np.ones(len(values))
    signs = _drawn_signs(values.shape[1], seed)
    for start in range(0, N_FLIPS, _FLIPS_AT_ONCE):
        rows = np.flatnonzero(n_extreme < ENOUGH)
        if not len(rows):
            break
        part = signs[start : start + _FLIPS_AT_ONCE].astype(np.float64)
        n_extreme[rows] += (np.abs(part @ values[rows].T) >= bound[rows]).sum(axis=0)
        n_flips[rows] += len(part)
    return n_extreme / n_flips


@lru_cache(maxsize=1)
def _drawn_signs(n: int, seed: int) -> Int8[np.ndarray, "flip document"]:
    """Random signs for n documents; a report compares its methods several times with the same ones."""
    return 2 * np.random.default_rng(seed).integers(0, 2, size=(N_FLIPS, n), dtype=np.int8) - 1


def holm(p: Float[np.ndarray, "row"]) -> Float[np.ndarray, "row"]:
    """P-values corrected for their number: the probability of any false positive stays below the level (Holm, 1979)."""
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(steps)
    return corrected


def mcnemar(n_gained: int, n_lost: int) -> float:
    """McNemar's (1947) exact two-sided p-value that as many decisions are gained as are lost."""
    n, fewer = n_gained + n_lost, min(n_gained, n_lost)
    return 1.0 if not n else min(1.0, 2 * float(special.bdtr(fewer, n, 0.5)))
