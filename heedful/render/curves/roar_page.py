"""The curves of ROAR: accuracy against the share of replaced words, as a figure, a page and in the terminal."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.evaluation.replaced_words import Mode
from heedful.evaluation.roar_curves import CONTROL, RoarCurves
from heedful.render.chart import INK, RULE, in_page_colours, inline_svg, new_figure
from heedful.render.templating import fill_template
from heedful.statistics.quantity import Quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEANINGS: dict[Mode, str] = {
    "remove": "strongest words replaced: lower is better",
    "keep": "weakest words replaced: higher is better",
}
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#808080")
_MARKERS = "s^Dv<>p"


def draw_roar(curves: RoarCurves) -> "Figure":
    """The figure of the lecture: test accuracy against the share of replaced words, a panel for each mode.

    The random control is dashed. Bars are 95 % confidence intervals over training seeds.
    """
    figure = new_figure(0.9 + 4.6 * len(curves.modes), 3.9)
    panels = figure.subplots(1, len(curves.modes), sharey=True, squeeze=False)[0]
    for mode, axes in zip(curves.modes, panels, strict=True):
        for number, method in enumerate(curves.methods):
            value, low, high = 100 * np.array(curves.curve(method, mode)).T
            is_control = method == CONTROL
            # Curves share their shares, and bars at one place would hide each other.
            shift = 0.4 * (number - (len(curves.methods) - 1) / 2)
            axes.errorbar(
                100 * np.array(curves.shares) + (shift if curves.n_seeds > 1 else 0),
                value,
                np.nan_to_num([value - low, high - value]),
                label=method,
                color=INK if is_control else _COLOURS[(number - 1) % len(_COLOURS)],
                fmt="o--" if is_control else f"{_MARKERS[(number - 1) % len(_MARKERS)]}-",
                markersize=4,
                linewidth=1.2,
                elinewidth=0.8,
                capsize=2,
            )
        axes.set_title(f"{mode} and retrain", color=INK, size=11)
        axes.set_xlabel("words replaced, %", color=INK)
        axes.set_xticks([100 * share for share in curves.shares])
        in_page_colours(axes)
        axes.grid(color=RULE, linewidth=0.4, alpha=0.25)
    panels[0].set_ylabel("test accuracy, %", color=INK)
    panels[0].legend(fontsize=8, frameon=False, labelcolor=INK)
    figure.tight_layout()
    return figure


def roar_page(curves: RoarCurves, skeleton: Literal["base.html", "cell.html"] = "base.html") -> str:
    """The figure, the table of every mode, and how to read them."""
    context = {
        "skeleton": skeleton,
        "curves": curves,
        "reading": reading(curves),
        "chart": inline_svg(draw_roar(curves), "test accuracy against the share of replaced words"),
        "tables": [(mode, MEANINGS[mode], roar_table(curves, mode)) for mode in curves.modes],
    }
    return fill_template("roar.html", context)


def print_roar(curves: RoarCurves, console: Console) -> None:
    """Prints the table of every mode."""
    for mode in curves.modes:
        heading, *rows = roar_table(curves, mode)
        title: str | None = f"{mode} and retrain, test accuracy in % ({MEANINGS[mode]})"
        for columns in _side_by_side([heading, *rows], console.width):
            table = Table(box=box.SIMPLE, pad_edge=False, title=title, title_justify="left")
            for number in columns:
                table.add_column(heading[number], justify="right" if number else "left", no_wrap=True)
            for row in rows:
                table.add_row(*(row[number] for number in columns))
            console.print(table)
            title = None
    for note in curves.notes:
        console.print(Text(f"Note: {note}", style="yellow"))
    console.print(Text(reading(curves), style="dim"))


def reading(curves: RoarCurves) -> str:
    """What the numbers are and what they do not say."""
    seeds = (
        f"± is the longer arm of the 95 % confidence interval over {curves.n_seeds} training seeds."
        if curves.n_seeds > 1
        else "One training seed gives no interval; small differences mean nothing."
    )
    return (
        f"{seeds} From random: the difference from the random control, averaged over the shares above 0, paired by "
        "seed. The retrained model is another model: a curve says what the words tell about the label, and only "
        "indirectly what the explained model does."
    )


def roar_table(curves: RoarCurves, mode: Mode) -> list[list[str]]:
    """A heading, and a row for each method: its accuracies in per cent, and its difference from random."""
    rows = [["method", *(f"{100 * share:g} %" for share in curves.shares), "from random"]]
    for method in curves.methods:
        away = "" if method == CONTROL else _percent(curves.from_random(method, mode), "+")
        rows.append([method, *(_percent(point) for point in curves.curve(method, mode)), away])
    return rows


def _side_by_side(rows: list[list[str]], width: int) -> list[list[int]]:
    """The columns of each table that fits the width; the names of the methods lead every one."""
    widths = [max(map(len, column)) + 3 for column in zip(*rows, strict=True)]
    tables, used = [[0]], widths[0]
    for number, needed in enumerate(widths[1:], 1):
        if used + needed > width and len(tables[-1]) > 1:
            tables.append([0])
            used = widths[0]
        tables[-1].append(number)
        used += needed
    return tables


def _percent(quantity: Quantity, sign: str = "") -> str:
    value, low, high = quantity
    if value != value:
        return ""
    arm = "" if low != low else f" ± {100 * max(value - low, high - value):.1f}"
    return f"{100 * value:{sign}.1f}{arm}".replace("-", "−")
