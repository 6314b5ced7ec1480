"""A number that was measured, with its interval."""

from math import hypot, inf, nan, sqrt
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float
from scipy import special

from heedful.statistics.intervals import jackknife_interval, mean_intervals, seed_intervals, student


@final
class Quantity(NamedTuple):
    """A number with its 95 % confidence interval; NaN where there are too few rows or texts for one."""

    value: float
    low: float = nan
    high: float = nan

    def __format__(self, style: str) -> str:
        style = style or ".4g"
        if self.value != self.value:
            return "unknown"
        return f"{self.value:{style}}" + ("" if self.low != self.low else f" [{self.low:{style}}, {self.high:{style}}]")

    def __str__(self) -> str:
        return format(self)

    def plain(self) -> list[float | None]:
        """Value, low and high, ready for JSON: None for what is not known."""
        return [None if number != number else number for number in self]


def mean_over_texts(values: Float[np.ndarray, "text"], bounds: tuple[float, float] = (-inf, inf)) -> Quantity:
    """The mean of one value per text, NaN of none; `bounds` are the least and the largest mean that is possible."""
    if not len(values):
        return Quantity(nan)
    low, high = mean_intervals(values[None], bounds)
    return Quantity(float(values.mean()), float(low[0]), float(high[0]))


def ratio_of(
    totals: Float[np.ndarray, "row"], sizes: Float[np.ndarray, "row"], bounds: tuple[float, float] = (-inf, inf)
) -> Quantity:
    """Σ totals / Σ sizes over rows or texts, with its jackknife interval; NaN if the sizes sum to 0."""
    total, size = float(totals.sum()), float(sizes.sum())
    if not size:
        return Quantity(nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        without_each = (total - totals) / (size - sizes)
    interval = jackknife_interval(total / size, without_each, bounds) if np.isfinite(without_each).all() else ()
    return Quantity(total / size, *interval)


def over_seeds(values: Float[np.ndarray, "seed"], bounds: tuple[float, float]) -> Quantity:
    """The mean of one value per trained model, with the interval of `seed_intervals`."""
    low, high = seed_intervals(values[None], bounds)
    return Quantity(float(values.mean()), float(low[0]), float(high[0]))


def mean_quantity(column: Float[np.ndarray, "text"], bounds: tuple[float, float] = (0.0, 1.0)) -> Quantity:
    """The mean over the texts that have a value, with its 95 % confidence interval.

    Of shares, where every text has 0 or 1, it is that of Clopper & Pearson (1934): rare texts make others too wide.
    Where all n texts have the same value, the interval reaches to where n texts would show no other value with
    probability 2.5 %, as for a proportion (Clopper & Pearson, 1934): 1 − 0.025^{1/n} of the way to either bound.
    """
    values = column[~np.isnan(column)]
    n, n_ones = len(values), float(values.sum())
    if n and bounds == (0.0, 1.0) and np.isin(values, (0.0, 1.0)).all():
        low = special.betaincinv(n_ones, n - n_ones + 1, 0.025) if n_ones else 0.0
        high = special.betaincinv(n_ones + 1, n - n_ones, 0.975) if n_ones < n else 1.0
        return Quantity(n_ones / n, float(low), float(high))
    mean = mean_over_texts(values, bounds)
    if not n or mean.low == mean.low:
        return mean
    if np.ptp(values) > 1e-12 * np.abs(values).max():
        return Quantity(mean.value, *bounds)
    unseen = most_unseen(n)
    return Quantity(mean.value, *(mean.value + unseen * (bound - mean.value) for bound in bounds))


def difference_of(one: Float[np.ndarray, "text"], other: Float[np.ndarray, "text"], most: float = 1.0) -> Quantity:
    """The mean difference over the texts that have both values; `most` is the largest difference that is possible."""
    return mean_quantity(one - other, (-most, most))


def is_above(mean: Quantity, bound: float = 0.0) -> bool:
    """Whether a mean is significantly above a bound."""
    return mean.low > bound


def is_below(mean: Quantity, bound: float = 0.0) -> bool:
    """Whether a mean is significantly below a bound."""
    return mean.high < bound


def most_unseen(n: int, share: float = 0.025) -> float:
    """The probability of a value of which n texts show none with probability `share`."""
    return 1 - share ** (1 / n)


def over_both(values: Float[np.ndarray, "seed text"], bounds: tuple[float, float]) -> Quantity:
    """The mean over texts and fits; of both 95 % intervals the distances to their ends are added as squares."""
    texts, seeds = mean_quantity(values.mean(axis=0), bounds), over_seeds(values.mean(axis=1), bounds)
    if seeds.low != seeds.low:
        return texts
    below, above = (hypot(texts.value - a, texts.value - b) for a, b in zip(texts[1:], seeds[1:], strict=True))
    return Quantity(texts.value, max(bounds[0], texts.value - below), min(bounds[1], texts.value + above))


def mean_change(change: Float[np.ndarray, "text"], n_tests: int) -> Quantity:
    """The mean of changes by −1, 0 or 1, with Student's interval, corrected by Bonferroni for the number of tests.

    Where no text changes, or all do, as many as `most_unseen` of them could and still not be among n texts.
    """
    n, mean, share = len(change), float(change.mean()), 0.025 / n_tests
    deviation = float(change.std(ddof=1)) if n > 1 else 0.0
    half = student(1 - share, float(max(n - 1, 1))) * deviation / sqrt(n) if deviation else 2 * most_unseen(n, share)
    return Quantity(mean, max(mean - half, -1.0), min(mean + half, 1.0))
