"""The map of activation patching: layers × positions, as a figure, a page, a notebook cell and in the terminal."""

from textwrap import wrap
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float
from rich import box
from rich.console import Console
from rich.table import Table

from heedful.generation.location import Location
from heedful.render.chart import INK, RULE, inline_svg, page_axes
from heedful.render.palette import GREEN, RED, strengths
from heedful.render.templating import fill_template
from heedful.render.text_strip import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {
    "residual": "the residual stream that enters a layer",
    "attention": "what attention adds in a layer",
    "mlp": "what the MLP adds in a layer",
}
_CELL, _LEAST, _LETTER, _NAME = 0.24, 3.0, 0.078, 28
_NUMBERED, _NOTABLE = 0.36, 0.05
_GREY = "#a0a0a0"
_BARS = " ▁▂▃▄▅▆▇█"


def draw_location(location: Location) -> "Figure":
    """A row per position in reading order, a column per layer; green restores the target, orange the opposite.

    The scale ends at the largest absolute score. Wide cells hold their number; in narrow ones "−" marks the negative.
    """
    scores, names = location.scores.T, [_short(name) for name in location.positions]
    n_positions, n_layers = scores.shape
    cell = max(_CELL, _LEAST / n_layers)
    left, right = _LETTER * max(map(len, names)) + 0.25, 0.95
    width = left + cell * n_layers + right
    caption = wrap(f"Restored share of {location.target}, by {PARTS[location.part]}", int(cell * n_layers / 0.06))
    bottom = 0.55 + 0.16 * len(caption)
    height = max(_CELL * n_positions, 0.6)
    axes = page_axes(width, 0.1 + height + bottom, (left, right, 0.1, bottom))
    axes.imshow(_tints(scores), aspect="auto", interpolation="none")
    axes.set_yticks(range(n_positions), names, parse_math=False)
    step = 1 if n_layers <= 40 else 5
    axes.set_xticks(range(0, n_layers, step), [str(layer) for layer in range(0, n_layers, step)])
    axes.set_xlabel("\n".join(["layer", *caption]), color=INK, size=8, parse_math=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(True)
    axes.set_xticks(np.arange(0.5, n_layers - 1), minor=True)
    axes.set_yticks(np.arange(0.5, n_positions - 1), minor=True)
    axes.grid(which="minor", color=_GREY, linewidth=0.3)
    axes.tick_params(which="minor", length=0)
    largest = float(np.nanmax(np.abs(scores)))
    for position, layer in np.argwhere(np.abs(scores) >= _NOTABLE * largest).tolist():
        score = scores[position, layer]
        mark = f"{score:.2f}".replace("-", "−") if cell >= _NUMBERED else "−" if score < 0 else ""
        axes.text(layer, position, mark, ha="center", va="center", size=8, color=INK)
    _draw_scale(axes, largest, (width - right + 0.15) / width)
    return axes.figure  # type: ignore[return-value]


def location_page(location: Location, skeleton: Literal["base.html", "cell.html"] = "base.html") -> str:
    """The map with what it shows, what it does not show, and every number."""
    tints = strengths(np.nan_to_num(location.scores))
    context = {
        "skeleton": skeleton,
        "location": location,
        "notes_shown": location.notes,
        "part": PARTS[location.part],
        "chart": inline_svg(draw_location(location), f"restored share, {len(location.layers)} layers × positions"),
        "rows": [
            (name, list(zip(location.scores[:, place].tolist(), tints[:, place].tolist(), strict=True)))
            for place, name in enumerate(location.positions)
        ],
    }
    return fill_template("location.html", context)


def print_location(location: Location, console: Console) -> None:
    """Prints a line per position: the restored share as a bar for each layer, and the strongest layer."""
    console.print(summary(location), markup=False, highlight=False)
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in ("position", f"layers 0 to {location.layers[-1]}", "strongest"):
        table.add_column(column, no_wrap=True)
    scores = np.nan_to_num(location.scores)
    largest = np.abs(scores).max()
    for place, name in enumerate(location.positions):
        own = scores[:, place]
        bars = "".join(_BARS[round(8 * max(0.0, float(score)) / largest)] for score in own)
        best = int(np.abs(own).argmax())
        strongest = f"{own[best]:+.2f} in layer {best}" if abs(own[best]) >= 0.005 else ""
        table.add_row(_short(name).replace("[", r"\["), bars, strongest)
    console.print(table)


def summary(location: Location) -> str:
    """What was compared, in two sentences."""
    before, after = f"{location.clean_value:.3g}", f"{location.corrupted_value:.3g}"
    return (
        f"After the clean prompt {location.target} is {before}, after the corrupted one {after}. The share of this "
        f"difference that returns if {PARTS[location.part]} is that of the clean prompt:"
    )


def _tints(scores: Float[np.ndarray, "position layer"]) -> Float[np.ndarray, "position layer 4"]:
    """Green and orange, the clearer the weaker the score, so that the background of a page shows through."""
    strength = strengths(np.nan_to_num(scores))
    tints = np.empty((*scores.shape, 4))
    tints[..., :3] = np.where(strength[..., None] > 0, GREEN, RED) / np.array(255.0)
    tints[..., 3] = 0.9 * np.abs(strength)
    tints[np.isnan(scores)] = (0.5, 0.5, 0.5, 0.2)
    return tints


def _draw_scale(axes: "Axes", largest: float, left: float) -> None:
    figure, place = axes.figure, axes.get_position()
    tall = min(place.height, 1.6 / figure.get_figheight())  # type: ignore[union-attr]
    bar = figure.add_axes((left, place.y1 - tall, 0.12 / figure.get_figwidth(), tall))  # type: ignore[union-attr]
    bar.patch.set_visible(False)
    bar.imshow(_tints(np.linspace(1, -1, 65)[:, None]), aspect="auto", extent=(0, 1, -largest, largest))
    bar.spines[:].set_edgecolor(RULE)
    bar.tick_params(color=RULE, labelcolor=INK, labelsize=8, right=True, left=False, labelright=True, labelleft=False)
    bar.set_xticks([])
    bar.set_yticks([-largest, 0, largest], [f"−{largest:.2f}", "0", f"{largest:.2f}"])


def _short(name: str) -> str:
    name = visible(name)
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
