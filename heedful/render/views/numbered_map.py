"""One attention map with its numbers: as a figure, or in the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.errors import BadInput
from heedful.render.chart import new_figure
from heedful.render.text_strip import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_NUMBERED = 40
"""The maximum number of tokens on a side: more numbers cannot be read."""


def check_legible(queries: Sequence[str], keys: Sequence[str]) -> None:
    """Refuses a map of too many tokens for numbers."""
    if max(len(queries), len(keys)) > N_NUMBERED:
        raise BadInput(
            f"Numbers can be read for up to {N_NUMBERED} tokens; this text has {max(len(queries), len(keys))}. "
            "Leave the numbers out, or shorten the text."
        )


def draw_numbered(
    axes: "Axes",
    matrix: Float[np.ndarray, "query key"],
    queries: Sequence[str],
    keys: Sequence[str],
    size: float = 8,
    numbers: bool = True,
) -> None:
    """Cells tinted by their weights, with two decimals in each; names of tokens at the sides."""
    axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1 if numbers else float(matrix.max()))
    for s, t in np.ndindex(*matrix.shape) if numbers else ():
        ink = "white" if matrix[s, t] > 0.5 else "black"
        axes.text(t, s, f"{matrix[s, t]:.2f}", ha="center", va="center", size=size, color=ink)
    axes.set_xticks(range(len(keys)), [_name(key) for key in keys], rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(queries)), [_name(query) for query in queries])
    axes.tick_params(labelsize=size)


def map_figure(
    matrix: Float[np.ndarray, "query key"],
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    numbers: bool = True,
) -> "Figure":
    """One map, with or without its numbers; rows are queries, columns keys."""
    if numbers:
        check_legible(queries, keys)
    figure = new_figure(1.2 + 0.42 * len(keys), 1.4 + 0.42 * len(queries))
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    draw_numbered(axes, matrix, queries, keys, numbers=numbers)
    axes.set_title(title, size=9)
    return figure


def print_numbered(
    matrix: Float[np.ndarray, "query key"], queries: Sequence[str], keys: Sequence[str], title: str, console: Console
) -> None:
    """The same in the terminal, a row for each query."""
    check_legible(queries, keys)
    table = Table(box=box.SIMPLE, pad_edge=False, title=title, title_justify="left")
    table.add_column("")
    for key in keys:
        table.add_column(Text(visible(key)), justify="right", no_wrap=True)
    for query, row in zip(queries, matrix, strict=True):
        table.add_row(Text(visible(query)), *(f"{weight:.2f}" for weight in row))
    console.print(table)


def _name(token: str) -> str:
    return visible(token).replace("$", r"\$")
