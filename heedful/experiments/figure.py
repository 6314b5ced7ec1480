"""Paper for the pictures of experiments, with matplotlib (the extra [plot]); the same numbers give the same bytes."""

from io import BytesIO
from typing import TYPE_CHECKING, Literal

from heedful.errors import MissingPackage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text as Text

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
"""Okabe and Ito's, which colour-blind readers tell apart: blue, vermilion, green, purple, orange, sky, black, grey."""


def figure(width: float = 7.0, height: float = 4.0) -> "Figure":
    """An empty figure of so many inches; it belongs to no window and needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackage("Figures need matplotlib, the extra [plot]; `make install` brings it.") from error
    return Figure(figsize=(width, height), layout="constrained")


def quiet(axes: "Axes") -> "Axes":
    """The axes without the frame's upper and right side."""
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def picture(drawn: "Figure", kind: Literal["svg", "png"]) -> bytes:
    """The figure as a file's bytes, without the date and random names that would make every run's different."""
    from matplotlib import rc_context

    stream = BytesIO()
    if drawn.get_layout_engine() is not None:
        # The layout moves until it has seen its own result; both kinds of file must show it settled.
        for _ in range(4):
            drawn.draw_without_rendering()
        drawn.set_layout_engine("none")
    about = {"Date": None} if kind == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "heedful", "svg.fonttype": "none"}):
        drawn.savefig(stream, format=kind, dpi=150, metadata=about, facecolor="white")
    return stream.getvalue()
