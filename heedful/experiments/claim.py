"""Claims: what a source says, what heedful measured, and whether the two agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, final

import numpy as np

from heedful.statistics.intervals import mean_intervals, mean_of_draws

Cell = str | int | float | bool | None
Numbers = Mapping[str, Sequence[Mapping[str, Cell]]]
"""The measurements: named tables of rows."""

ClaimVerdict = Literal["agrees", "differs", "corrected", "new", "not measured"]
"""Differs: the numbers differ, and `why` gives the reason. Corrected: the numbers show that the source is wrong as
printed. New: no source gives a value. Not measured: something is missing, and `why` says what."""


@final
@dataclass(frozen=True)
class Claim:
    """One line of the report: published, ours, verdict, and why."""

    what: str
    published: str
    """As the source prints it; empty where it prints nothing."""
    ours: str
    verdict: ClaimVerdict
    why: str


def claim_if(holds: bool | np.bool_, what: str, published: str, ours: str, why: str, otherwise: str) -> Claim:
    """A claim that agrees with its source if the condition holds, with a reason for either case."""
    return Claim(what, published, ours, "agrees" if holds else "differs", why if holds else otherwise)


@final
@dataclass(frozen=True)
class Mean:
    """A mean over documents, models or draws, with a 95 % interval where there are at least two."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        if not isfinite(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_of(values: Sequence[float]) -> Mean:
    """The mean of the finite values and its 95 % confidence interval.

    For few values, such as one per trained model, it is Student's interval, which assumes that they are nearly normal.
    """
    finite = np.array([value for value in values if isfinite(value)], dtype=np.float64)
    if not len(finite):
        return Mean(float("nan"), float("nan"), float("nan"), 0)
    low, high = mean_intervals(finite[None])
    if len(finite) > 1 and np.isnan(low[0]):
        mean, half_width = mean_of_draws(finite[:, None])
        low, high = mean - half_width, mean + half_width
    return Mean(float(finite.mean()), float(low[0]), float(high[0]), len(finite))


def finite_or_none(cell: Cell) -> Cell:
    """The cell, or None for NaN and infinity."""
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def column(rows: Sequence[Mapping[str, Cell]], name: str, **where: Cell) -> list[float]:
    """The numbers of one column, of the rows whose other cells equal `where`; NaN where a cell is missing."""
    chosen = [row[name] for row in rows if all(row[key] == value for key, value in where.items())]
    return [float("nan") if cell is None else float(cell) for cell in chosen]
