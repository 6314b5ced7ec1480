"""Attention heads and their patterns: in the terminal, as a page, or one head as SVG."""

from pathlib import Path

import numpy as np
from jaxtyping import Float
from rich import box
from rich.console import Console
from rich.table import Table

from heedful.document import Document
from heedful.errors import BadInput
from heedful.models.head_patterns import Heads
from heedful.render.head_arcs import arcs_svg
from heedful.render.head_gallery import gallery_page
from heedful.render.text_strip import map_axes
from heedful.render.views.numbered_map import numbered_figure, print_numbered
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
    console.print(
        f"Scores: shares of attention over {texts}; broad: entropy, 1 is uniform. Attention by itself is not "
        "an explanation."
    )


def write_heads(
    document: Document,
    maps: Float[np.ndarray, "layer head query key"],
    heads: Heads,
    path: Path,
    layer: int = -1,
    head: int | None = None,
) -> None:
    """Writes a document's maps: all of them as a page (.html), or one head or a layer's mean as lines (.svg)."""
    ending = path.suffix.lower()
    if ending == ".html":
        write_file(path, gallery_page(document, maps, heads))
        return
    if ending != ".svg":
        raise BadInput(f"The file must end in .html or .svg; {path.name!r} was given.")
    matrix, title = _chosen_map(maps, layer, head)
    n = len(document.ids)
    write_file(path, arcs_svg(document.pieces, matrix[:n, :n], title))


def show_numbers(
    document: Document,
    maps: Float[np.ndarray, "layer head query key"],
    path: Path | None,
    layer: int = -1,
    head: int | None = None,
) -> None:
    """One map with its numbers, of a head or the mean of a layer: printed, or drawn into a .png, .svg or .pdf."""
    matrix, title = _chosen_map(maps, layer, head)
    queries, keys = map_axes(document, maps)
    own = matrix[: len(queries), : len(keys)]
    if path is None:
        print_numbered(own, queries, keys, title, Console())
        return
    ending = path.suffix.lower()
    if ending not in (".png", ".svg", ".pdf"):
        raise BadInput(f"A map with numbers must end in .png, .svg or .pdf; {path.name!r} was given.")
    figure = numbered_figure(own, queries, keys, title)
    write_file(path, lambda file: figure.savefig(file, format=ending[1:], dpi=200))


def _chosen_map(
    maps: Float[np.ndarray, "layer head query key"], layer: int, head: int | None
) -> tuple[Float[np.ndarray, "query key"], str]:
    for name, number, n in (("layer", layer, maps.shape[0]), ("head", 0 if head is None else head, maps.shape[1])):
        if not -n <= number < n:
            raise BadInput(f"There is no {name} {number}; the model has {n}, numbered from 0.")
    title = f"layer {layer % len(maps)}, {'mean of heads' if head is None else f'head {head % maps.shape[1]}'}"
    return (maps[layer].mean(axis=0) if head is None else maps[layer, head]), title
