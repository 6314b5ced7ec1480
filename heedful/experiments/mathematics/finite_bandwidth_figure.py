"""The figure of the experiment on finite bandwidths: coefficients, convergence of sampled LIME, and the limit."""

from typing import TYPE_CHECKING

import numpy as np

from heedful.experiments.claim import Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.mathematics.log_log_slope import curves, rms
from heedful.experiments.mathematics.mardaoui_garreau import DEFAULT, WIDE

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure


def bandwidth_figure(numbers: Numbers) -> "Figure":
    """Three panels: five words by bandwidth, the distance to Theorem 1 by samples, and errors as ν → ∞."""
    sheet = figure(8.0, 3.8)
    for place, panel in enumerate((_words, _samples, _limits), start=1):
        panel(quiet(sheet.add_subplot(1, 3, place)), numbers)
    for axes in sheet.axes:
        axes.legend(frameon=False, fontsize=7)
    return sheet


def _words(axes: "Axes", numbers: Numbers) -> None:
    for unit, colour in zip(sorted(set(column(numbers["drawn"], "unit"))), COLOURS, strict=False):
        rows = sorted(
            (row for row in numbers["text"] if row["unit"] == unit and row["nu"] != WIDE),
            key=lambda row: column([row], "nu"),
        )
        axes.semilogx(column(rows, "nu"), column(rows, "theorem"), color=colour, linewidth=1)
        mean, low, high = (np.array(column(numbers["drawn"], name, unit=unit)) for name in ("mean", "low", "high"))
        nu = column(numbers["drawn"], "nu", unit=unit)
        wide = next(row for row in numbers["wide"] if row["unit"] == unit)
        # A pair of dollars would be read as a formula.
        word = str(wide["word"]).replace("$", r"\$")
        axes.errorbar(nu, mean, [mean - low, high - mean], fmt="o", color=colour, markersize=3, capsize=2, label=word)
        limit = column([wide], "Eq. (17)")[0]
        axes.plot([5, 10], [limit, limit], color=colour, linewidth=3, alpha=0.5)
    axes.axvline(DEFAULT, color=COLOURS[7], linewidth=1, linestyle=":")
    axes.set(title="five words of the text", xlabel="bandwidth ν", ylabel="coefficient; thick: Eq. (17)")


def _samples(axes: "Axes", numbers: Numbers) -> None:
    n, error = curves(numbers["samples"], "n", "distance")
    for run in error:
        axes.loglog(n, run, "o", color=COLOURS[5], markersize=2)
    mean = rms(error)
    axes.loglog(n, mean, "o-", color=COLOURS[0], markersize=4, label="drawn LIME")
    axes.loglog(n, mean[-1] * np.sqrt(n[-1] / np.array(n)), color=COLOURS[7], label="slope −1/2")
    axes.set_xticks(n[::2], [f"{count:.0f}" for count in n[::2]], minor=False)
    axes.set_xticks([], minor=True)
    axes.set(title=f"to Theorem 1, ν = {DEFAULT}", xlabel="samples n", ylabel="distance (2-norm)")


def _limits(axes: "Axes", numbers: Numbers) -> None:
    names = ("Eq. (17)", "Eq. (17), centred", "with the factor, centred", "with both")
    for name, colour in zip(names, (COLOURS[1], COLOURS[4], COLOURS[3], COLOURS[2]), strict=True):
        points = column(numbers["limits"], "d"), column(numbers["limits"], name)
        axes.semilogy(*points, "o-", color=colour, markersize=3, label=name)
    axes.set(title="ν → ∞, all sets listed", xlabel="words d", ylabel="relative error")
