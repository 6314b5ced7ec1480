"""Steering: the verdict, effects and costs with their intervals, curves over strengths, and the texts side by side."""

from math import exp, isnan
from typing import Any, Literal

import numpy as np
from markupsafe import Markup
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.features.labelled import WORD
from heedful.features.steering import (
    CONTROLS,
    FEATURE,
    MEANS,
    MEASURES,
    RANDOM,
    UNCHANGED,
    Measured,
    Steering,
    rounded,
    shown,
)
from heedful.render.chart import INK, PAPER, RULE, inline_svg, page_axes
from heedful.render.templating import fill_template
from heedful.render.text_strip import visible
from heedful.statistics.quantity import Quantity

_SHOWN = 20
"""Prompts whose texts are on the page; the .json file has all."""
_LINES = {FEATURE: ("#009e73", "-", "o"), MEANS: ("#d55e00", "--", "s"), RANDOM: ("#808080", ":", "^")}
_CURVES: tuple[tuple[Measured, str], ...] = (
    ("words", "labelled words per 100"),
    ("log-probability", "log-probability of the label"),
    ("surprise", "perplexity"),
)
_COLUMNS = ("labelled words per 100", "texts with one", "log-probability of the label", "perplexity", "repeated pairs")


def steering_page(steering: Steering, skeleton: Literal["base.html", "cell.html"] = "base.html") -> str:
    """The page of a steered feature."""
    context = {
        "skeleton": skeleton,
        "steering": steering,
        "columns": _COLUMNS,
        "meanings": list(MEASURES.values()),
        "rows": [_row(steering, name) for name in (UNCHANGED, FEATURE, *CONTROLS)],
        "leads": [
            (name, [_difference(measure, steering.lead(measure, name)) for measure in MEASURES]) for name in CONTROLS
        ],
        "curves": _curves(steering) if len(steering.factors) > 1 else [],
        "texts": [_texts(steering, place) for place in range(min(_SHOWN, len(steering.prompts)))],
    }
    return fill_template("steering.html", context)


def print_steering(steering: Steering, console: Console) -> None:
    """Prints the verdict, a row for every direction, and the texts after the first prompt."""
    console.print(Text(visible(steering.verdict), style="bold"))
    for note in steering.notes:
        console.print(Text(f"Note: {visible(note)}", style="yellow"))
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in ("", *_COLUMNS):
        table.add_column(column, overflow="fold")
    for name in (UNCHANGED, FEATURE, *CONTROLS):
        cells = _row(steering, name)["cells"]
        table.add_row(name, *(f"{mean}\n{change}" if change else mean for mean, change in cells))
    console.print(table)
    for name in (UNCHANGED, FEATURE, *CONTROLS):
        text = Text.assemble((f"{name}: ", "bold"), (visible(steering.prompts[0]), "dim"))
        console.print(text + Text(visible(steering.run(name).texts[0])))


def _row(steering: Steering, name: str) -> dict[str, Any]:
    run = steering.run(name)
    changes = [None if name == UNCHANGED else steering.change(measure, name) for measure in MEASURES]
    cells = [
        (_mean(measure, run.values[measure]), "" if change is None else _difference(measure, change))
        for measure, change in zip(MEASURES, changes, strict=True)
    ]
    return {"name": name, "norm": run.norm, "cells": cells}


def _mean(measure: Measured, values: Any) -> str:
    if np.isnan(values).all():
        return "not known"
    mean = float(np.nanmean(values))
    if measure == "surprise":
        return rounded(exp(mean))
    return f"{mean:.0%}" if measure in ("texts", "repetition") else f"{mean:.3g}"


def _difference(measure: Measured, change: Quantity) -> str:
    if measure == "surprise":
        mean, low, high = (rounded(exp(value)) for value in change)
        return f"×{mean}" if isnan(change.low) else f"×{mean} [{low} to {high}]"
    if measure in ("texts", "repetition"):
        return shown(Quantity(*(100 * value for value in change)), "+.1f")
    return shown(change)


def _curves(steering: Steering) -> list[Markup]:
    return [inline_svg(_curve(steering, measure, name), f"{name} by strength") for measure, name in _CURVES]


def _curve(steering: Steering, measure: Measured, name: str) -> Any:
    """The mean of a measure at every strength, with the interval of its change against the unchanged model."""
    axes = page_axes(3.7, 2.7, (0.55, 0.1, 0.3, 0.5))
    axes.set_title(name, color=INK, size=9, loc="left")
    start = float(np.nanmean(steering.run(UNCHANGED).values[measure]))
    places = range(1 + len(steering.factors))
    for direction, (colour, style, marker) in _LINES.items():
        changes = [Quantity(0.0, 0.0, 0.0), *(steering.change(measure, direction, own) for own in steering.factors)]
        values = np.array([[start + value for value in change] for change in changes])
        values = np.exp(values) if measure == "surprise" else values
        axes.plot(places, values[:, 0], color=colour, linestyle=style, marker=marker, markersize=4, label=direction)
        axes.vlines(places, values[:, 1], values[:, 2], color=colour, linewidth=1)
    if measure == "surprise":
        axes.set_yscale("log")
    axes.set_xticks(places, ["0", *(_strength(steering, own) for own in steering.factors)])
    axes.set_xlabel("strength", color=INK, size=9)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    if measure == "words":
        axes.legend(loc="upper left", fontsize=8, labelcolor=INK, facecolor=PAPER, edgecolor=RULE, framealpha=0.8)
    return axes.figure


def _strength(steering: Steering, factor: float) -> str:
    """The strength as a multiple of the largest activation, such as 5x, or as an activation."""
    c = steering.run(FEATURE, factor).c
    return f"{c / steering.largest:.3g}x" if steering.largest > 0 else f"{c:.3g}"


def _texts(steering: Steering, place: int) -> dict[str, Any]:
    columns = [(name, _marked(steering, steering.run(name).texts[place])) for name in (UNCHANGED, FEATURE, *CONTROLS)]
    return {"prompt": steering.prompts[place], "columns": columns}


def _marked(steering: Steering, text: str) -> list[tuple[str, bool]]:
    """The pieces of a text, and which of them are labelled words."""
    pieces, last = [], 0
    for match in WORD.finditer(text):
        pieces += [(text[last : match.start()], False), (match[0], match[0].casefold() in steering.label.words)]
        last = match.end()
    return [*pieces, (text[last:], False)]
