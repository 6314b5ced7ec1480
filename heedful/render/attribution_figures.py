"""The picture of an attribution: a heat map, a row for each part of the output, a column for each source."""

from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from heedful.generation.attribution import Attribution
from heedful.render.chart import new_figure
from heedful.render.decoding_figures import token_name
from heedful.render.palette import blend, strengths
from heedful.render.text_strip import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FAINT = 0.02
"""Cells below this share of the largest score have no colour, which makes large pages small."""
_CELL, _CHARACTER, _LONGEST = 0.2, 0.075, 24


def cell_strengths(scores: Float[np.ndarray, "output source"]) -> Float[np.ndarray, "output source"]:
    """The strength of every cell in [−1, 1]: the square root of its share of the largest score of all."""
    relative = strengths(scores.ravel()).reshape(scores.shape)
    return np.where(np.abs(relative) < _FAINT, 0.0, np.sign(relative) * np.sqrt(np.abs(relative)))


def source_names(attribution: Attribution) -> list[str]:
    """The names of the sources in one line each; passages have their numbers in front, and earlier output says so."""
    first = attribution.explanations[0]
    names = [visible(" ".join(name.split())) or token_name(name) for name in attribution.sources]
    if first.unit == "passage":
        return [f"{number} {name}" for number, name in enumerate(names, start=1)]
    read = set(first.document.unit_of(first.unit)[: -attribution.n_written].tolist())
    return [name if number in read else f"{name} (output)" for number, name in enumerate(names)]


def part_names(attribution: Attribution) -> list[str]:
    """The names of the parts in one short line each."""
    return [_short(visible(" ".join(name.split())) or token_name(name)) for name in attribution.outputs]


def draw_attribution(attribution: Attribution) -> "Figure":
    """The heat map; a cell with a stroke is negative."""
    cells = cell_strengths(attribution.scores)
    columns, rows = [_short(name) for name in source_names(attribution)], part_names(attribution)
    left, top = (0.2 + _CHARACTER * max(map(len, names)) for names in (rows, columns))
    width = max(4.0, left + _CELL * len(columns) + 0.2)
    first = attribution.explanations[0]
    sign = "Green: for the part, orange with a stroke: against it." if first.signed else "Scores have no sign."
    about = f"{attribution.method}, {attribution.settings.get('measure', '')}. {sign} Colour: square root of the share."
    legend = wrap(about, int(width / _CHARACTER))
    height = top + _CELL * len(rows) + 0.2 + 0.16 * len(legend)
    figure = new_figure(width, height)
    across, down = _CELL * len(columns), _CELL * len(rows)
    axes = figure.add_axes((left / width, (height - top - down) / height, across / width, down / height))
    tints = np.array([[blend(strength, (255, 255, 255)) for strength in row] for row in cells.tolist()])
    axes.imshow(tints / 255, aspect="auto", interpolation="nearest")
    against = np.argwhere(cells < 0)
    axes.scatter(against[:, 1], against[:, 0], marker="_", s=14, linewidths=0.6, color="black")
    axes.set_xticks(range(len(columns)), columns, rotation=90, size=7)
    axes.set_yticks(range(len(rows)), rows, size=7)
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_edgecolor("#cccccc")
    for line, sentence in enumerate(reversed(legend)):
        figure.text(0.1 / width, (0.08 + 0.16 * line) / height, sentence, size=7, color="dimgray")
    return figure


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
