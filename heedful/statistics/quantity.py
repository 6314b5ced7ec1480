"""A number that was measured, with its interval."""

from math import inf, nan
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from heedful.statistics.intervals import jackknife_interval, mean_intervals


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
