"""Rates of convergence: the slope in log-log coordinates and its 95 % confidence interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.experiments.claim import Cell, column
from heedful.statistics.intervals import TEXTS_FOR_INTERVAL, jackknife_interval


@final
@dataclass(frozen=True)
class Slope:
    """An exponent: y ∝ x^value, with a 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def curves(
    rows: Sequence[Mapping[str, Cell]], x: str, y: str, **where: Cell
) -> tuple[list[float], Float[np.ndarray, "document x"]]:
    """The values of column x, and at each those of column y, document by document; for the rows that match `where`."""
    chosen = [row for row in rows if all(row[key] == value for key, value in where.items())]
    values = sorted(set(column(chosen, x)))
    return values, np.array([column(chosen, y, **{x: value}) for value in values]).T


def rms(y: Float[np.ndarray, "document x"]) -> Float[np.ndarray, "x"]:
    """The root mean square over documents."""
    return np.sqrt((y**2).mean(axis=0))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The least-squares slope of log y over log x."""
    return float(_fitting(x) @ np.log(np.asarray(y, dtype=np.float64)))


def longer_half(x: Sequence[float], y: Float[np.ndarray, "document x"]) -> Slope:
    """The slope over the larger half of the sorted x, which is closer to the limit."""
    half = len(x) // 2
    return slope_over_documents(x[half:], y[:, half:])


def slope_over_documents(x: Sequence[float], y: Float[np.ndarray, "document x"]) -> Slope:
    """The slope of the root mean square of y over documents, and its interval over documents, by the jackknife.

    The interval covers the variation over documents only, not the distance of the numbers from their limit.
    """
    value = slope(x, rms(y).tolist())
    squares = y**2
    without_each = (squares.sum(axis=0) - squares) / max(1, len(y) - 1)
    if len(y) < TEXTS_FOR_INTERVAL:
        return Slope(value, float("nan"), float("nan"))
    return Slope(value, *jackknife_interval(value, np.log(without_each) / 2 @ _fitting(x)))


def _fitting(x: Sequence[float]) -> Float[np.ndarray, "x"]:
    """The weights of log y in the least-squares slope over log x."""
    over = np.log(np.asarray(x, dtype=np.float64))
    over = over - over.mean()
    return over / (over @ over)
