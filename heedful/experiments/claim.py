"""Claims: what a source says, what heedful measured, and whether the two agree."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal, final

import numpy as np

from heedful.errors import brief
from heedful.statistics.intervals import mean_intervals, seed_intervals

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
    general: bool = False
    """Whether the source states it of every model and text, so that a user's own can refute it."""

    __repr__ = brief


def claim_if(holds: bool | np.bool_, what: str, published: str, ours: str, why: str, otherwise: str) -> Claim:
    """A claim that agrees with its source if the condition holds, with a reason for either case."""
    return Claim(what, published, ours, "agrees" if holds else "differs", why if holds else otherwise)


@final
@dataclass(frozen=True)
class Mean:
    """A mean over documents or trained models with its 95 % confidence interval; NaN where there is none."""

    value: float
    low: float
    high: float
    n: int

    @property
    def has_interval(self) -> bool:
        """Whether there were enough values, not all equal, for an interval."""
        return isfinite(self.low)

    def __str__(self) -> str:
        if not self.n:
            return "undefined"
        if not self.has_interval:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


CORRELATIONS = (-1.0, 1.0)
"""The bounds of correlations."""
DIFFERENCES = (-2.0, 2.0)
"""The bounds of differences of two correlations."""
SHARES = (0.0, 1.0)
"""The bounds of shares and accuracies."""


def mean_of(values: Sequence[float], bounds: tuple[float, float] = (-inf, inf)) -> Mean:
    """The mean of the finite values of documents and its 95 % confidence interval, within `bounds`."""
    return _mean(values, lambda finite: mean_intervals(finite, bounds))


def mean_over_seeds(values: Sequence[float], bounds: tuple[float, float] = (-inf, inf)) -> Mean:
    """The mean of the finite values of a few trained models and its 95 % confidence interval, within `bounds`."""
    return _mean(values, lambda finite: seed_intervals(finite, bounds))


def _mean(values: Sequence[float], intervals: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> Mean:
    finite = np.array([value for value in values if isfinite(value)], dtype=np.float64)
    if not len(finite):
        return Mean(float("nan"), float("nan"), float("nan"), 0)
    low, high = intervals(finite[None])
    return Mean(float(finite.mean()), float(low[0]), float(high[0]), len(finite))


def agreement(
    published: float, ours: float, interval: tuple[float, float], published_interval: tuple[float, float] | None = None
) -> tuple[ClaimVerdict, str]:
    """Whether a published number and ours agree, and a sentence that says why.

    They agree if the published number lies in our 95 % confidence interval, or ours in the published one.
    """
    if interval[0] <= published <= interval[1]:
        return "agrees", "The published value lies in our 95 % confidence interval."
    if published_interval is not None and published_interval[0] <= ours <= published_interval[1]:
        return "agrees", "Our value lies in the published 95 % confidence interval."
    if not isfinite(interval[0]):
        return "differs", "Our value has no confidence interval."
    also = "" if published_interval is None else ", nor ours in the published one"
    return "differs", f"The published value does not lie in our 95 % confidence interval{also}."


def finite_or_none(cell: Cell) -> Cell:
    """The cell, or None for NaN and infinity."""
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def column(rows: Sequence[Mapping[str, Cell]], name: str, **where: Cell) -> list[float]:
    """The numbers of one column, of the rows whose other cells equal `where`; NaN where a cell is missing."""
    chosen = [row[name] for row in rows if all(row[key] == value for key, value in where.items())]
    return [float("nan") if cell is None else float(cell) for cell in chosen]
