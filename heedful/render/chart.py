"""The chart layer: matplotlib figures as files, or as SVG inside a page.

The same numbers give the same bytes. In a page, ink and background follow its light or dark scheme.
"""

import re
from io import BytesIO
from typing import TYPE_CHECKING, Literal
from warnings import catch_warnings, simplefilter

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PAPER, RULE = "#010203", "#020301", "#030102"
"""Colours that a page replaces by its own: text and lines, background, grid lines."""
_OF_THE_PAGE = {INK: "currentColor", PAPER: "var(--paper)", RULE: "var(--rule)"}
# Inside HTML an SVG needs no name spaces, and the ids of matplotlib's groups would repeat on a page of several charts.
_ONLY_IN_FILES = re.compile(r' xmlns(:xlink)?="[^"]*"|(?<=<g) id="[^"]*"')


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of this size in inches; it has no window and needs no screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def page_axes(width: float, height: float, margins: tuple[float, float, float, float]) -> "Axes":
    """Axes for a chart of a page, with margins in inches: left, right, top and bottom."""
    left, right, top, bottom = margins
    axes = new_figure(width, height).add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    )
    return in_page_colours(axes)


def in_page_colours(axes: "Axes") -> "Axes":
    """The axes without a background and in the page's colours."""
    axes.patch.set_visible(False)
    axes.spines[:].set_edgecolor(RULE)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(color=RULE, labelcolor=INK, labelsize=9)
    return axes


def figure_bytes(figure: "Figure", kind: Literal["svg", "png"], background: str = "white") -> bytes:
    """The figure as a file, without the date and the random ids that would differ from run to run."""
    from matplotlib import rc_context

    stream = BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "heedful", "svg.fonttype": "none"}), catch_warnings():
        # Viewers have their own fonts, so characters missing from matplotlib's font do not matter.
        simplefilter("ignore", UserWarning)
        figure.savefig(stream, format=kind, dpi=150, metadata=metadata, facecolor=background)
    return stream.getvalue()


def inline_svg(figure: "Figure", title: str) -> Markup:
    """The figure as an SVG element of a page, whose colours it takes."""
    drawing = figure_bytes(figure, "svg", background="none").decode("utf-8")
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing[drawing.index("<svg") :], flags=re.DOTALL)
    drawing = _ONLY_IN_FILES.sub("", drawing).replace("xlink:href", "href")
    for colour, name in _OF_THE_PAGE.items():
        drawing = drawing.replace(colour, name)
    title_element = f'<svg class="chart" role="img" direction="ltr"><title>{escape(title)}</title>'
    opening, rest = drawing.split(">", 1)
    return Markup(title_element.replace("<svg", opening, 1) + rest.strip())
