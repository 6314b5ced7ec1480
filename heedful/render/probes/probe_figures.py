"""The charts of a probe report: findings that share an axis, with their nulls."""

from collections.abc import Sequence
from itertools import takewhile
from math import isnan
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple, final

from heedful.evaluation.probes import Finding
from heedful.render.chart import INK, PAPER, page_axes
from heedful.render.text_strip import visible
from heedful.statistics.quantity import Quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GREEN, _GREY = "#009e73", "#808080"
_WIDTH, _LETTERS = 3.4, 50
_LINE, _BAR, _GAP = 0.15, 0.17, 0.07
"""Heights in inches: a line of a label, a bar, and the space after it."""


@final
class FindingGroup(NamedTuple):
    """Findings that share an axis: the words that all of them begin with, and the rest of each."""

    title: str
    labels: tuple[str, ...]
    findings: tuple[Finding, ...]


def finding_groups(findings: Sequence[Finding]) -> list[FindingGroup]:
    """Findings whose first word, the quantity, is the same; a finding that is alone needs no chart."""
    by_quantity: dict[str, list[Finding]] = {}
    for finding in findings:
        if not isnan(finding.value.value):
            by_quantity.setdefault(finding.what.split()[0], []).append(finding)
    return [_group(tuple(own)) for own in by_quantity.values() if len(own) > 1]


def draw_findings(group: FindingGroup) -> "Figure":
    """A row per finding: its label, a disc and a bar for the value and its interval, and the null.

    One dashed line is the null of all rows; squares with bars are nulls that differ or have an interval.
    """
    nulls = [finding.null for finding in group.findings]
    shared = nulls[0] if nulls[0] is not None and all(null == nulls[0] for null in nulls) else None
    labels = [wrap(visible(label), _LETTERS) for label in group.labels]
    height = sum(_LINE * len(lines) + _BAR + _GAP for lines in labels)
    axes = page_axes(_WIDTH, height + 0.35, (0.1, 0.1, 0.05, 0.3))
    axes.set(xlim=_limits(group.findings), ylim=(height, 0))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    if shared is not None:
        axes.axvline(shared.value, color=INK, linewidth=0.8, linestyle=(0, (3, 3)))
    top = 0.0
    for lines, finding in zip(labels, group.findings, strict=True):
        top = _draw_label(axes, lines, top)
        if finding.null is not None and finding.null is not shared:
            _draw_quantity(axes, finding.null, top + 0.75 * _BAR, _GREY, "s", PAPER)
        _draw_quantity(axes, finding.value, top + 0.35 * _BAR, INK, "o", _GREEN)
        top += _BAR + _GAP
    return axes.figure  # type: ignore[return-value]


def _group(findings: tuple[Finding, ...]) -> FindingGroup:
    words = [finding.what.split() for finding in findings]
    n = len([*takewhile(lambda same: len({*same}) == 1, zip(*words, strict=False))])
    if any(len(own) == n for own in words):
        n = 0
    labels = tuple(" ".join(own[n:]) for own in words)
    return FindingGroup(" ".join(words[0][:n]).rstrip(",") or words[0][0], labels, findings)


def _limits(findings: Sequence[Finding]) -> tuple[float, float]:
    """The axis: 0, every value and every end of an interval, with a margin."""
    quantities = [quantity for finding in findings for quantity in (finding.value, finding.null) if quantity]
    ends = [0.0, *(number for quantity in quantities for number in quantity if not isnan(number))]
    margin = 0.04 * (max(ends) - min(ends) or 1.0)
    return min(ends) - margin, max(ends) + margin


def _draw_label(axes: "Axes", lines: list[str], top: float) -> float:
    """Draws the lines of a label and gives the height below them."""
    for line in lines:
        place = axes.get_yaxis_transform()
        axes.text(0, top + _LINE / 2, line, transform=place, va="center", size=9, color=INK, parse_math=False)
        top += _LINE
    return top


def _draw_quantity(axes: "Axes", quantity: Quantity, y: float, edge: str, shape: str, fill: str) -> None:
    axes.plot([quantity.low, quantity.high], [y, y], color=edge, linewidth=1.4)
    point = {"markersize": 6, "markerfacecolor": fill, "markeredgecolor": edge, "markeredgewidth": 1.2}
    axes.plot(quantity.value, y, shape, clip_on=False, zorder=3, **point)
