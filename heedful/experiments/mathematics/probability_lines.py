"""Printed probabilities about a random set of s of n units: by counting all sets, and by drawing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Bool

from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.mathematics.subsets import all_kept, kept_of_size
from heedful.statistics.intervals import wilson

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

Event = Callable[[Bool[np.ndarray, "unit subset"]], Bool[np.ndarray, "subset"]]
"""Whether something happens to the first units: of each, whether it is kept."""


def always(kept: Bool[np.ndarray, "unit subset"]) -> Bool[np.ndarray, "subset"]:
    """The condition that is no condition."""
    return np.ones(kept.shape[1], dtype=bool)


@final
@dataclass(frozen=True)
class Line:
    """One printed line: P_s(happens | given) = printed(n, s), about distinct units that stand first."""

    text: str
    formula: str
    happens: Event
    printed: Callable[[int, int], Fraction]
    given: Event = always


def counted(lines: Sequence[Line], n_units: Sequence[int], largest_s: Callable[[int], int]) -> list[dict[str, Cell]]:
    """Every line against the count of all sets of size s, for all ways to choose its three units, as fractions."""
    rows: list[dict[str, Cell]] = []
    for n in n_units:
        keep = all_kept(n)
        sizes = n - keep.sum(axis=1)
        for s in range(1, largest_s(n) + 1):
            of_size = keep[sizes == s].T
            for line in lines:
                found = {_counted(line, of_size[list(units)]) for units in permutations(range(n), 3)}
                printed = line.printed(n, s)
                said = {"counted": float(max(found)), "printed": float(printed), "equal": found == {printed}}
                rows.append({"line": line.text, "n": n, "s": s, **said})
    return rows


def _counted(line: Line, kept: Bool[np.ndarray, "3 subset"]) -> Fraction:
    given = line.given(kept)
    return Fraction(int((line.happens(kept) & given).sum()), int(given.sum()))


def drawn(lines: Sequence[Line], n: int, largest_s: int, n_draws: int, seed: int) -> list[dict[str, Cell]]:
    """Every line against draws of S, with 95 % intervals, and intervals that hold for all rows together in 95 %."""
    rows: list[dict[str, Cell]] = []
    chance = np.random.default_rng(seed)
    together = 1 - 0.05 / (largest_s * len(lines))
    for s in range(1, largest_s + 1):
        kept = kept_of_size(n, s, n_draws, chance).T
        for line in lines:
            given = line.given(kept)
            count, among = int((line.happens(kept) & given).sum()), int(given.sum())
            low, high = wilson(count, among)
            lowest, highest = wilson(count, among, together)
            said = {"share": count / among, "low": low, "high": high, "lowest": lowest, "highest": highest}
            rows.append({"line": line.text, "n": n, "s": s, **said, "printed": float(line.printed(n, s))})
    return rows


def claims_of_lines(lines: Sequence[Line], numbers: Numbers) -> list[Claim]:
    """A line agrees if every count equals it and no interval for all rows together leaves it out."""
    claims = []
    for line in lines:
        rows = [row for row in numbers["counted"] if row["line"] == line.text]
        wrong = [row for row in rows if not row["equal"]]
        low, high, lowest, highest, printed = (
            np.array(column(numbers["drawn"], name, line=line.text))
            for name in ("low", "high", "lowest", "highest", "printed")
        )
        inside = int(((low <= printed) & (printed <= high)).sum())
        far = int(((printed < lowest) | (printed > highest)).sum())
        sizes = column(rows, "n")
        ours = (
            f"{len(rows) - len(wrong)} of {len(rows)} counts equal it as fractions (n = {min(sizes):.0f} … "
            f"{max(sizes):.0f}, every s, any units); drawn: {inside} of {len(printed)} 95 % intervals hold it"
        )
        why = "The count of all sets is a proof for these n; the draws look at a larger one."
        if wrong:
            first = wrong[0]
            why = f"With n = {first['n']} and s = {first['s']} the count of all sets gives {first['counted']:.4g}, not "
            why += f"{first['printed']:.4g}."
        elif far:
            why = f"The counts agree, but {far} intervals that should all hold leave the printed value out."
        claims.append(Claim(line.text, line.formula, ours, "agrees" if not wrong and not far else "differs", why))
    return claims


def picture_of_lines(lines: Sequence[Line], numbers: Numbers) -> "Figure":
    """On the left all sets of a small n counted, on the right a larger n drawn; the printed values are the lines."""
    sheet = figure(7.5, 3.8)
    most = int(max(column(numbers["counted"], "n")))
    tables = (("counted", numbers["counted"], {"n": most}), ("drawn", numbers["drawn"], {}))
    for place, (kind, rows, where) in enumerate(tables, start=1):
        axes = quiet(sheet.add_subplot(1, 2, place))
        for line, colour in zip(lines, COLOURS, strict=False):
            s, printed = (column(rows, name, line=line.text, **where) for name in ("s", "printed"))
            axes.plot(s, printed, color=colour, linewidth=1, label=line.text)
            found = column(rows, "counted" if kind == "counted" else "share", line=line.text, **where)
            spread = None
            if kind == "drawn":
                ends = np.array([column(rows, end, line=line.text) for end in ("low", "high")])
                spread = np.abs(ends - np.array(found))
            axes.errorbar(s, found, spread, fmt="o", color=colour, markersize=3, capsize=2, linewidth=1)
        n = most if kind == "counted" else int(column(rows, "n")[0])
        title = f"points: all sets counted, n = {n}" if kind == "counted" else f"points: drawn, n = {n}, 95 % intervals"
        axes.set(title=title, xlabel="removed units s", ylabel="probability" if place == 1 else "")
    sheet.legend(
        *sheet.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        title="as printed",
        frameon=False,
    )
    return sheet
