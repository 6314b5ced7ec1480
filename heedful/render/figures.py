"""Figures of explanations and head maps for papers and slides."""

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from heedful.errors import BadInput
from heedful.evaluation.comparison import Comparison
from heedful.explanation import Explanation
from heedful.render.chart import new_figure
from heedful.render.palette import GREEN, RED, blend
from heedful.render.patches import patch_strengths
from heedful.render.text_strip import map_axes, pieces, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

Tinted = tuple[str, float | None]
"""A word and its strength; None where no unit is."""

_CHARACTERS_A_LINE = 90
_GAP = 1.2
_EDGE = 1.0
"""The space at the left and the right of a strip, in characters."""
_SMALL = 0.75
"""The width of a character of the legend, in characters of a strip; its font is smaller."""


def draw_comparison(comparison: Comparison) -> "Figure":
    """The strips of all explanations of a comparison."""
    return draw_strips(comparison.explanations)


def draw_strips(explanations: Sequence[Explanation]) -> "Figure":
    """Figure 1: a strip per method, words tinted by their scores; for an image, tinted patches."""
    if explanations[0].document.picture is not None:
        return _pictures(explanations)
    first = explanations[0]
    legend = [
        f"f = {first.output:+.4f}, {first.target}; {colours_meaning(explanations)}",
        *(note for note in first.notes if all(note in other.notes for other in explanations)),
    ]
    return draw_tinted([(e.method, [piece[:2] for piece in pieces(e)]) for e in explanations], legend)


def colours_meaning(explanations: Sequence[Explanation]) -> str:
    """What the colours of some explanations say: only signed methods say for and against."""
    signed = [explanation.signed for explanation in explanations]
    if not any(signed):
        return "the darker, the larger the score, which has no sign"
    unsigned = "" if all(signed) else "; unsigned methods are green throughout"
    return f"green: for, underlined: against it{unsigned}"


def draw_tinted(strips: Sequence[tuple[str, Sequence[Tinted]]], legend: Sequence[str]) -> "Figure":
    """The words of every strip on the tints of their strengths in [−1, 1], on as many lines as they need."""
    lines = [_wrapped(words) for _, words in strips]
    n_lines = sum(len(rows) for rows in lines)
    margin = max(len(name) for name, _ in strips) + 2
    widest = margin + max(sum(len(text) + _GAP for text, _ in row) for rows in lines for row in rows)
    most = max(int(widest / _SMALL), _CHARACTERS_A_LINE)
    legend = [line for sentence in legend for line in wrap(sentence, most)]
    widest = max(widest, *(_SMALL * len(line) for line in legend)) if legend else widest
    figure = new_figure(0.085 * (widest + 2 * _EDGE), 0.32 * (n_lines + len(legend)) + 0.2)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-_EDGE, widest + _EDGE), ylim=(n_lines + len(legend), 0))
    for line, sentence in enumerate(legend):
        axes.text(0, n_lines + line + 0.5, visible(sentence), va="center", size=8, color="dimgray")
    axes.axis("off")
    height = 0.0
    for (name, _), rows in zip(strips, lines, strict=True):
        axes.text(0, height + 0.5, name, va="center", family="monospace", size=9)
        for row in rows:
            place: float = margin
            for text, strength in row:
                if strength is not None:
                    tint = [channel / 255 for channel in blend(strength, (255, 255, 255))]
                    axes.add_patch(_rectangle((place - 0.3, height + 0.1), len(text) + 0.6, 0.8, tint))
                    if strength < 0:
                        axes.plot([place, place + len(text)], [height + 0.82] * 2, color="black", linewidth=0.7)
                axes.text(place, height + 0.5, text, va="center", family="monospace", size=9)
                place += len(text) + _GAP
            height += 1
    return figure


def draw_head_maps(comparison: Comparison) -> "Figure":
    """Figure 3: the attention matrix of every head of the last layer over the document's own tokens."""
    if comparison.maps is None:
        raise BadInput("This model has no attention, so there are no head maps to draw.")
    looking, tokens = map_axes(comparison.document, comparison.maps)
    heads = comparison.maps[-1, :, : len(looking), : len(tokens)]
    figure = new_figure(3.2 * min(3, len(heads)), 3.2 * -(-len(heads) // 3))
    for number, matrix in enumerate(heads, start=1):
        axes = figure.add_subplot(-(-len(heads) // 3), min(3, len(heads)), number)
        axes.imshow(matrix, cmap="Blues", vmin=0)
        axes.set_title(f"head {number}", size=9)
        for names, draw, angle in ((tokens, axes.set_xticks, 90), (looking, axes.set_yticks, 0)):
            few = [visible(name) for name in names] if len(names) <= 20 else []
            draw(np.arange(len(few)), few, rotation=angle, size=7)
    figure.tight_layout()
    return figure


def _pictures(explanations: Sequence[Explanation]) -> "Figure":
    picture = explanations[0].document.picture
    assert picture is not None
    n_columns = min(5, len(explanations) + 1)
    n_rows = -(-(len(explanations) + 1) // n_columns)
    figure = new_figure(2.2 * n_columns, 2.5 * n_rows)
    rows, columns = picture.grid
    frame = (-0.5, columns - 0.5, rows - 0.5, -0.5)
    first = explanations[0]
    for number, explanation in enumerate((None, *explanations), start=1):
        axes = figure.add_subplot(n_rows, n_columns, number)
        axes.axis("off")
        axes.set_title(
            f"f = {first.output:+.3f}, {first.target}" if explanation is None else explanation.method, size=7
        )
        if explanation is None:
            axes.imshow(picture.rgb, extent=frame)
            continue
        axes.imshow(picture.rgb.mean(axis=2), cmap="gray", extent=frame, vmin=0, vmax=255)
        strength = patch_strengths(explanation)
        tints = np.zeros((rows, columns, 4))
        tints[..., :3] = np.where(strength[..., None] > 0, GREEN, RED) / np.array(255.0)
        tints[..., 3] = 0.75 * np.abs(strength)
        axes.imshow(tints, extent=frame)
    figure.tight_layout()
    return figure


def _wrapped(words: Sequence[Tinted]) -> list[list[Tinted]]:
    rows: list[list[Tinted]] = [[]]
    length = 0.0
    for text, strength in words:
        if not text.strip():
            continue
        if length + len(text) > _CHARACTERS_A_LINE and rows[-1]:
            rows.append([])
            length = 0.0
        rows[-1].append((text.strip(), strength))
        length += len(text) + _GAP
    return rows


def _rectangle(corner: tuple[float, float], width: float, height: float, colour: list[float]) -> "Rectangle":
    from matplotlib.patches import Rectangle

    return Rectangle(corner, width, height, facecolor=colour, linewidth=0)
