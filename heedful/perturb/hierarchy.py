"""Hierarchical Shapley values: a document is halved repeatedly, and each half gets its share of f."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.document import SPECIAL, Document, Unit
from heedful.perturb.sweep import Interrupted, Sweep

Units = Int[np.ndarray, "_"]
Split = Callable[[Units], tuple[Units, Units]]
"""Splits a set of units into two halves, neither of them empty."""

_AT_ONCE = 32


def halves(document: Document, unit: Unit) -> Split:
    """How to halve any part of a document: an image across its longer side, a text at its widest boundary.

    A text is cut between the texts of a pair, else between sentences, else (if units are tokens) between words, else
    anywhere; of several such places the one nearest the middle is taken. Types occur in several places and are halved
    in order of first appearance.
    """
    if document.picture is not None:
        n_columns = document.picture.grid[1]
        return lambda units: _across(units, n_columns)
    levels = _levels(document, unit)
    return lambda units: _along(units, levels)


def _levels(document: Document, unit: Unit) -> list[Int[np.ndarray, "unit"]]:
    """For each kind of boundary, from the widest to the narrowest: the part that each unit belongs to."""
    if unit == "type":
        return []
    unit_of = document.unit_of(unit)
    real = unit_of != SPECIAL
    levels = []
    if document.segments is not None:
        text = np.zeros(document.n_units(unit), dtype=np.int64)
        text[unit_of[real]] = document.segments[real]
        levels.append(text)
    holders: dict[Unit, tuple[Unit, ...]] = {"token": ("sentence", "word"), "word": ("sentence",)}
    return levels + [document.coarsening(unit, holder) for holder in holders.get(unit, ())]


def _along(units: Units, levels: list[Int[np.ndarray, "unit"]]) -> tuple[Units, Units]:
    for level in levels:
        ends = np.flatnonzero(np.diff(level[units])) + 1
        if len(ends):
            middle = ends[np.argmin(np.abs(2 * ends - len(units)))]
            return units[:middle], units[middle:]
    return units[: len(units) // 2], units[len(units) // 2 :]


def _across(units: Units, n_columns: int) -> tuple[Units, Units]:
    row, column = units // n_columns, units % n_columns
    place = row if np.ptp(row) >= np.ptp(column) else column
    first = place <= (int(place.min()) + int(place.max())) // 2
    return units[first], units[~first]


def masks_needed(split: Split, units: Units) -> int:
    """The number of masks needed to split a set of units into single units."""

    def below(units: Units, contexts: int) -> int:
        if len(units) == 1:
            return 0
        return 2 * contexts + sum(below(half, 2 * contexts) for half in split(units))

    return 2 + below(units, 1)


@final
@dataclass(frozen=True)
class Part:
    """Some units in the context of other kept units: f without and with them, and the weight of this context."""

    units: Units
    context: Bool[np.ndarray, "unit"]
    without: float
    together: float
    weight: float

    @property
    def value(self) -> float:
        """The weighted difference that the units make to f in this context."""
        return self.weight * (self.together - self.without)


@final
@dataclass(frozen=True)
class UnitShares:
    """The share of every unit in f(x) − f(empty), and how much was spread evenly within parts left unsplit."""

    scores: Float[np.ndarray, "unit"]
    empty: float
    spread_share: float
    """The part of all absolute values that was spread evenly over several units."""
    n_spread: int
    stopped: bool


def share_out(split: Split, sweep: Sweep, budget: int) -> UnitShares:
    """Splits f(x) − f(empty) half by half, the largest values first, with at most `budget` masks.

    A half gets the mean of what it adds before and after the other half. Each of these two differences is a part of its
    own, which is split further in its own context.
    """
    n_units = sweep.n_units
    whole = np.arange(n_units)
    together, empty = sweep(np.array([[True], [False]]).repeat(n_units, axis=1)).tolist()
    scores, resolved, stopped = np.zeros(n_units), 0.0, False
    # Equal values are split in the order in which they appeared.
    waiting: list[tuple[float, int, Part]] = []
    n_pushed = 0
    fresh = [Part(whole, np.zeros(n_units, dtype=bool), empty, together, 1.0)]
    while True:
        for part in fresh:
            if len(part.units) == 1:
                scores[part.units] += part.value
                resolved += abs(part.value)
            else:
                heappush(waiting, (-abs(part.value), n_pushed, part))
                n_pushed += 1
        n_next = min(_AT_ONCE, len(waiting), (budget - sweep.n_masks) // 2)
        if n_next < 1 or stopped:
            break
        fresh, stopped = _split([heappop(waiting)[2] for _ in range(n_next)], split, sweep)
    spread = 0.0
    for _, _, part in sorted(waiting, key=lambda entry: entry[1]):
        scores[part.units] += part.value / len(part.units)
        spread += abs(part.value)
    share = spread / (resolved + spread) if spread else 0.0
    return UnitShares(scores, empty, share, len(waiting), stopped)


def _split(parts: list[Part], split: Split, sweep: Sweep) -> tuple[list[Part], bool]:
    """The four parts that each part becomes; a part whose masks were not evaluated stays as it is."""
    halved = [split(part.units) for part in parts]
    keep = np.stack([part.context for part in parts]).repeat(2, axis=0)
    for row, half in enumerate(half for pair in halved for half in pair):
        keep[row, half] = True
    try:
        values, evaluated = sweep(keep), np.ones(len(keep), dtype=bool)
    except Interrupted as stop:
        values, evaluated = stop.values, stop.evaluated
    fresh: list[Part] = []
    for row, (part, (left, right)) in enumerate(zip(parts, halved, strict=True)):
        first, second = 2 * row, 2 * row + 1
        if not (evaluated[first] and evaluated[second]):
            fresh.append(part)
            continue
        f_left, f_right, weight = float(values[first]), float(values[second]), part.weight / 2
        fresh += [
            Part(left, part.context, part.without, f_left, weight),
            Part(left, keep[second], f_right, part.together, weight),
            Part(right, part.context, part.without, f_right, weight),
            Part(right, keep[first], f_left, part.together, weight),
        ]
    return fresh, not evaluated.all()
