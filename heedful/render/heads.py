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
from heedful.render.head_arcs import arcs_svg
from heedful.render.head_gallery import gallery_page, special_sentence
from heedful.render.text_strip import map_axes
from heedful.render.views.numbered_map import map_figure, print_numbered
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
    matrix, queries, keys, title = _chosen_map(document, maps, layer, head, unit)
    if ending == ".svg":
        write_file(path, arcs_svg(queries, matrix[:, : len(queries)], title))
    else:
        figure = map_figure(matrix, queries, keys, title, numbers=False)
        write_file(path, lambda file: figure.savefig(file, format="png", dpi=200))


def show_numbers(
    document: Document,
    maps: Float[np.ndarray, "layer head query key"],
    path: Path | None,
    layer: int = -1,
    head: int | None = None,
    unit: Unit = "token",
) -> None:
    """One map with its numbers, of a head or the mean of a layer: printed, or drawn into a .png, .svg or .pdf."""
    matrix, queries, keys, title = _chosen_map(document, maps, layer, head, unit)
    if maps.shape[3] > len(document.ids) and (matrix.sum(axis=1) < 0.995).any():
        title = f"{title}\nrows sum to less than 1:\nthe rest is on padding"
    if path is None:
        print_numbered(matrix, queries, keys, title, Console())
        return
    ending = path.suffix.lower()
    if ending not in (".png", ".svg", ".pdf"):
        raise BadInput(f"A map with numbers must end in .png, .svg or .pdf; {path.name!r} was given.")
    figure = map_figure(matrix, queries, keys, title)
    write_file(path, lambda file: figure.savefig(file, format=ending[1:], dpi=200))


def _chosen_map(
    document: Document, maps: Float[np.ndarray, "layer head query key"], layer: int, head: int | None, unit: Unit
) -> tuple[Float[np.ndarray, "row column"], Sequence[str], Sequence[str], str]:
    """One map between units, their names, and a title."""
    for name, number, n in (("layer", layer, maps.shape[0]), ("head", 0 if head is None else head, maps.shape[1])):
        if not -n <= number < n:
            raise BadInput(f"There is no {name} {number}; the model has {n}, numbered from 0.")
    matrix = maps[layer].mean(axis=0) if head is None else maps[layer, head]
    title = f"layer {layer % len(maps)}, {'mean of heads' if head is None else f'head {head % maps.shape[1]}'}"
    if unit == "token":
        queries, keys = map_axes(document, maps)
    else:
        queries, keys, matrix = unit_maps(document, unit, matrix)
    return matrix[: len(queries), : len(keys)], queries, keys, title
