"""Figures of experiments: size, colours and files."""

from typing import TYPE_CHECKING, Literal

from heedful.render.chart import figure_bytes, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text as Text

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe and Ito's colours, safe for colour-blind readers: blue, vermilion, green, purple, orange, sky, black, grey."""


def figure(width: float = 7.0, height: float = 4.0) -> "Figure":
    """An empty figure of this size in inches, whose layout avoids overlaps."""
    drawn = new_figure(width, height)
    drawn.set_layout_engine("constrained")
    return drawn


def quiet(axes: "Axes") -> "Axes":
    """The axes without the frame's upper and right side."""
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def picture(drawn: "Figure", kind: Literal["svg", "png"]) -> bytes:
    """The figure as the bytes of a file; the same drawing gives the same bytes."""
    if drawn.get_layout_engine() is not None:
        # The layout moves until it has seen its own result; both kinds of file must show it settled.
        for _ in range(4):
            drawn.draw_without_rendering()
        drawn.set_layout_engine("none")
    return figure_bytes(drawn, kind)
