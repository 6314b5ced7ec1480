"""A document in ever smaller halves, and what each half is worth."""

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
"""Two halves of some units, neither of them empty."""

_AT_ONCE = 32


def halves(document: Document, unit: Unit) -> Split:
    """How to halve any part of a document: a picture across its longer side, a text where it holds together least.

    That is between the texts of a pair, else between sentences, else (if units are tokens) between words, else
    anywhere; and there as near the middle as can be. Types have no one place and are halved in order of appearance.
    """
    if document.picture is not None:
        n_columns = document.picture.grid[1]
        return lambda units: _across(units, n_columns)
    levels = _levels(document, unit)
    return lambda units: _along(units, levels)


def _levels(document: Document, unit: Unit) -> list[Int[np.ndarray, "unit"]]:
    """What holds each unit, from the widest to the narrowest."""
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
    """How many masks it takes to share out the value of units down to every single one."""

    def below(units: Units, contexts: int) -> int:
        if len(units) == 1:
            return 0
        return 2 * contexts + sum(below(half, 2 * contexts) for half in split(units))

    return 2 + below(units, 1)


@final
@dataclass(frozen=True)
class Part:
    """Some units beside others that are there, f without and with them, and how much that counts."""

    units: Units
    beside: Bool[np.ndarray, "unit"]
    without: float
    together: float
    weight: float

    @property
    def value(self) -> float:
        return self.weight * (self.together - self.without)


@final
@dataclass(frozen=True)
class Shared:
    """What every unit is worth, f of nothing, and how much was spread evenly because no more was asked."""

    scores: Float[np.ndarray, "unit"]
    empty: float
    spread_share: float
    """Of the absolute values that were shared out, the part that went to several units at once."""
    n_spread: int
    stopped: bool


def share_out(split: Split, sweep: Sweep, budget: int) -> Shared:
    """f(x) − f(empty), shared out half by half, the largest values first, by asking at most `budget` masks.

    A part's value is split by the mean of the two orders: a half is worth what it adds before the other half, and what
    it adds after it, half of each. The two are parts of their own, to be split further beside what was there.
    """
    n_units = sweep.n_units
    whole = np.arange(n_units)
    together, empty = sweep(np.array([[True], [False]]).repeat(n_units, axis=1)).tolist()
    scores, result, stopped = np.zeros(n_units), 0.0, False
    # Equal values are split in the order they were met.
    waiting: list[tuple[float, int, Part]] = []
    n_met = 0
    fresh = [Part(whole, np.zeros(n_units, dtype=bool), empty, together, 1.0)]
    while True:
        for part in fresh:
            if len(part.units) == 1:
                scores[part.units] += part.value
                result += abs(part.value)
            else:
                heappush(waiting, (-abs(part.value), n_met, part))
                n_met += 1
        n_next = min(_AT_ONCE, len(waiting), (budget - sweep.n_masks) // 2)
        if n_next < 1 or stopped:
            break
        fresh, stopped = _split([heappop(waiting)[2] for _ in range(n_next)], split, sweep)
    spread = 0.0
    for _, _, part in sorted(waiting, key=lambda entry: entry[1]):
        scores[part.units] += part.value / len(part.units)
        spread += abs(part.value)
    share = spread / (result + spread) if spread else 0.0
    return Shared(scores, empty, share, len(waiting), stopped)


def _split(parts: list[Part], split: Split, sweep: Sweep) -> tuple[list[Part], bool]:
    """The four parts that each part becomes; a part that could not be asked about any more stays as it is."""
    halved = [split(part.units) for part in parts]
    keep = np.stack([part.beside for part in parts]).repeat(2, axis=0)
    for row, half in enumerate(half for pair in halved for half in pair):
        keep[row, half] = True
    try:
        values, evaluated = sweep(keep), np.ones(len(keep), dtype=bool)
    except Interrupted as stop:
        values, evaluated = stop.values, stop.evaluated
    fresh: list[Part] = []
    for row, (part, (one, other)) in enumerate(zip(parts, halved, strict=True)):
        first, second = 2 * row, 2 * row + 1
        if not (evaluated[first] and evaluated[second]):
            fresh.append(part)
            continue
        f_one, f_other, weight = float(values[first]), float(values[second]), part.weight / 2
        fresh += [
            Part(one, part.beside, part.without, f_one, weight),
            Part(one, keep[second], f_other, part.together, weight),
            Part(other, part.beside, part.without, f_other, weight),
            Part(other, keep[first], f_one, part.together, weight),
        ]
    return fresh, not evaluated.all()
