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
"""An event about the first units, as a function of which of them are kept."""


def always(kept: Bool[np.ndarray, "unit subset"]) -> Bool[np.ndarray, "subset"]:
    """The condition that always holds."""
    return np.ones(kept.shape[1], dtype=bool)


@final
@dataclass(frozen=True)
class ProbabilityFormula:
    """One printed formula: P_s(happens | condition) = printed(n, s), for distinct units, which come first."""

    text: str
    formula: str
    happens: Event
    printed: Callable[[int, int], Fraction]
    condition: Event = always


def count_formulas(
    formulas: Sequence[ProbabilityFormula], n_units: Sequence[int], largest_s: Callable[[int], int]
) -> list[dict[str, Cell]]:
    """Every formula against the count of all sets of size s, for all ways to choose its three units, as fractions."""
    rows: list[dict[str, Cell]] = []
    for n in n_units:
        keep = all_kept(n)
        sizes = n - keep.sum(axis=1)
        for s in range(1, largest_s(n) + 1):
            of_size = keep[sizes == s].T
            for formula in formulas:
                values = {_counted(formula, of_size[list(units)]) for units in permutations(range(n), 3)}
                printed = formula.printed(n, s)
                cells = {"counted": float(max(values)), "printed": float(printed), "equal": values == {printed}}
                rows.append({"formula": formula.text, "n": n, "s": s, **cells})
    return rows


def _counted(formula: ProbabilityFormula, kept: Bool[np.ndarray, "3 subset"]) -> Fraction:
    counts = formula.condition(kept)
    return Fraction(int((formula.happens(kept) & counts).sum()), int(counts.sum()))


def draw_formulas(
    formulas: Sequence[ProbabilityFormula], n: int, largest_s: int, n_draws: int, seed: int
) -> list[dict[str, Cell]]:
    """Every formula against draws of S, with 95 % intervals, and simultaneous 95 % intervals over all rows."""
    rows: list[dict[str, Cell]] = []
    rng = np.random.default_rng(seed)
    together = 1 - 0.05 / (largest_s * len(formulas))
    for s in range(1, largest_s + 1):
        kept = kept_of_size(n, s, n_draws, rng).T
        for formula in formulas:
            counts = formula.condition(kept)
            count, among = int((formula.happens(kept) & counts).sum()), int(counts.sum())
            low, high = wilson(count, among)
            lowest, highest = wilson(count, among, together)
            cells = {"share": count / among, "low": low, "high": high, "lowest": lowest, "highest": highest}
            rows.append({"formula": formula.text, "n": n, "s": s, **cells, "printed": float(formula.printed(n, s))})
    return rows


def formula_claims(formulas: Sequence[ProbabilityFormula], numbers: Numbers) -> list[Claim]:
    """A formula agrees if every count equals it and every simultaneous interval contains it."""
    claims = []
    for formula in formulas:
        rows = [row for row in numbers["counted"] if row["formula"] == formula.text]
        wrong = [row for row in rows if not row["equal"]]
        low, high, lowest, highest, printed = (
            np.array(column(numbers["drawn"], name, formula=formula.text))
            for name in ("low", "high", "lowest", "highest", "printed")
        )
        inside = int(((low <= printed) & (printed <= high)).sum())
        far = int(((printed < lowest) | (printed > highest)).sum())
        sizes = column(rows, "n")
        ours = (
            f"{len(rows) - len(wrong)} of {len(rows)} counts equal it as fractions (n = {min(sizes):.0f} … "
            f"{max(sizes):.0f}, every s, any units); sampled: {inside} of {len(printed)} 95 % intervals contain it"
        )
        why = "The count of all sets is a proof for these n; the samples test a larger n."
        if wrong:
            first = wrong[0]
            why = f"With n = {first['n']} and s = {first['s']} the count of all sets gives {first['counted']:.4g}, not "
            why += f"{first['printed']:.4g}."
        elif far:
            why = f"The counts agree, but {far} simultaneous intervals do not contain the printed value."
        claims.append(Claim(formula.text, formula.formula, ours, "agrees" if not wrong and not far else "differs", why))
    return claims


def formula_figure(formulas: Sequence[ProbabilityFormula], numbers: Numbers) -> "Figure":
    """On the left all sets of a small n counted, on the right a larger n drawn; the printed values are the formulas."""
    sheet = figure(7.5, 3.8)
    most = int(max(column(numbers["counted"], "n")))
    tables = (("counted", numbers["counted"], {"n": most}), ("drawn", numbers["drawn"], {}))
    for place, (kind, rows, where) in enumerate(tables, start=1):
        axes = quiet(sheet.add_subplot(1, 2, place))
        for formula, colour in zip(formulas, COLOURS, strict=False):
            s, printed = (column(rows, name, formula=formula.text, **where) for name in ("s", "printed"))
            axes.plot(s, printed, color=colour, linewidth=1, label=formula.text)
            shares = column(rows, "counted" if kind == "counted" else "share", formula=formula.text, **where)
            spread = None
            if kind == "drawn":
                ends = np.array([column(rows, end, formula=formula.text) for end in ("low", "high")])
                spread = np.abs(ends - np.array(shares))
            axes.errorbar(s, shares, spread, fmt="o", color=colour, markersize=3, capsize=2, linewidth=1)
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
