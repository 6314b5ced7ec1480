"""Attention heads and their patterns: in the terminal, as a page, or one head as SVG."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from rich import box
from rich.console import Console
from rich.table import Table

from heedful.document import Document, Unit
from heedful.document.units import unit_maps
from heedful.errors import BadInput
from heedful.models.head_patterns import Heads
from heedful.render.chart import figure_bytes, new_figure
from heedful.render.head_arcs import arcs_svg, token_label
from heedful.render.head_gallery import gallery_page, special_sentence
from heedful.run_folder import write_file

_SHOWN = 3


def print_heads(heads: Heads, console: Console) -> None:
    """Prints a line per head: its name, and its clearest patterns compared with uniform attention."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in ("layer", "head", "name", "clearest patterns (uniform)"):
        table.add_column(column)
    for layer, names in enumerate(heads.names):
        for head, name in enumerate(names):
            best = np.argsort(-heads.excess[layer, head], kind="stable")[:_SHOWN].tolist()
            most = [f"{heads.patterns[i]} {heads.scores[layer, head, i]:.2f} ({heads.uniform[i]:.2f})" for i in best]
            table.add_row(str(layer), str(head), name, ", ".join(most))
    console.print(table)
    texts = "1 text" if heads.n_texts == 1 else f"{heads.n_texts:,} texts"
    relations = "; of relations, what the best fixed offset finds" if "→" in "".join(heads.patterns) else ""
    console.print(
        f"Scores: shares of attention over {texts}; broad: entropy, 1 is uniform{relations}. Attention by itself "
        "is not an explanation."
    )
    if heads.special is not None:
        console.print(f"{special_sentence(heads)} {heads.special.verdict}", highlight=False, markup=False)


def write_heads(
    document: Document,
    maps: Float[np.ndarray, "layer head query key"],
    heads: Heads,
    path: Path,
    layer: int = -1,
    head: int | None = None,
    unit: Unit = "token",
) -> None:
    """Writes a document's maps between its units: all of them as a page (.html), or one head or a layer's mean.

    One map is drawn as lines (.svg) or as a square (.png).
    """
    ending = path.suffix.lower()
    if ending == ".html":
        write_file(path, gallery_page(document, maps, heads, unit))
        return
    if ending not in (".svg", ".png"):
        raise BadInput(f"The file must end in .html, .svg or .png; {path.name!r} was given.")
    for name, number, n in (("layer", layer, maps.shape[0]), ("head", 0 if head is None else head, maps.shape[1])):
        if not -n <= number < n:
            raise BadInput(f"There is no {name} {number}; the model has {n}, numbered from 0.")
    matrix = maps[layer].mean(axis=0) if head is None else maps[layer, head]
    names, _, matrix = (document.pieces, (), matrix) if unit == "token" else unit_maps(document, unit, matrix)
    matrix = matrix[: len(names), : len(names)]
    title = f"layer {layer % len(maps)}, {'mean of heads' if head is None else f'head {head % maps.shape[1]}'}"
    drawn = arcs_svg(names, matrix, title) if ending == ".svg" else _square(names, matrix, title)
    write_file(path, drawn)


def _square(names: Sequence[str], matrix: Float[np.ndarray, "query key"], title: str) -> bytes:
    side = 2.0 + 0.28 * len(names)
    figure = new_figure(side, side)
    axes = figure.add_subplot()
    image = axes.imshow(matrix, cmap="Blues", vmin=0)
    labels = [token_label(name) for name in names]
    axes.set_xticks(np.arange(len(names)), labels, rotation=90)
    axes.set_yticks(np.arange(len(names)), labels)
    axes.set(title=title, xlabel="attended to", ylabel="attends")
    figure.colorbar(image, shrink=0.6, label="share of attention")
    figure.tight_layout()
    return figure_bytes(figure, "png")
