"""The charts of a trust report: scores with their intervals, and scores against costs."""

from collections.abc import Mapping
from math import ceil, floor, isnan, log10
from typing import TYPE_CHECKING, Literal, NamedTuple, final

from heedful.evaluation.report import Report
from heedful.evaluation.verdict import CONTROL, SIGNIFICANCE, Standing, Verdict
from heedful.render.chart import INK, PAPER, RULE, page_axes
from heedful.render.text_strip import visible
from heedful.render.trust_text import short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["best", "good", "behind", "same", "worse", "control"]
_GREEN, _ORANGE, _GREY = "#009e73", "#d55e00", "#808080"
_MARKERS: Mapping[Kind, tuple[str, str, str]] = {
    "best": ("o", _GREEN, INK),
    "good": ("o", _GREEN, _GREEN),
    "behind": ("o", PAPER, _GREEN),
    "same": ("o", PAPER, _GREY),
    "worse": ("o", PAPER, _ORANGE),
    "control": ("s", _GREY, _GREY),
}
"""Shape, fill and edge: discs for the best and its equals, rings for others, a square for the control."""
_LETTER, _ROW, _PLOT = 0.075, 0.26, 2.6


@final
class MethodCosts(NamedTuple):
    """What one explanation costs by each method, in passes through the model or in seconds."""

    unit: Literal["passes", "seconds"]
    by_method: dict[str, float]


def standing_kind(verdict: Verdict, standing: Standing) -> Kind:
    """The position of a method in a verdict: best, as good, behind, like the control, or worse."""
    if standing.method == CONTROL:
        return "control"
    if standing.method == verdict.recommended:
        return "best"
    if standing.beats_control >= SIGNIFICANCE:
        return "same"
    if not standing.is_better:
        return "worse"
    return "good" if standing.method in verdict.as_good else "behind"


def standing_sentence(verdict: Verdict, standing: Standing) -> str:
    """How a method compares with the control and with the best method, with p-values."""
    control, best = _p(standing.beats_control), _p(standing.behind)
    nor = f", nor from the best ({best})" if standing.method in verdict.as_good else ""
    sentence = {
        "control": "control",
        "best": f"{'recommended' if len(verdict.equals) == 1 else 'highest score'}; better than {CONTROL} ({control})",
        "same": f"not distinguishable from {CONTROL} ({control}){nor}",
        "worse": f"worse than {CONTROL} ({control})",
        "good": f"better than {CONTROL} ({control}); not distinguishable from the best ({best})",
        "behind": f"better than {CONTROL} ({control}); worse than the best ({best})",
    }[standing_kind(verdict, standing)]
    return f"{sentence}; no value on {standing.n_missing} texts" if standing.n_missing else sentence


def draw_forest(verdict: Verdict) -> "Figure":
    """A row per method: its score, its 95 % confidence interval, and how it compares with the others."""
    standings = verdict.standings
    sentences = [standing_sentence(verdict, standing) for standing in standings]
    left = _LETTER * max(len(_short(standing.method)) for standing in standings) + 0.2
    right = 1.6 + 0.07 * max(map(len, sentences))
    axes = page_axes(left + _PLOT + right, _ROW * len(standings) + 0.4, (left, right, 0.05, 0.35))
    axes.axvline(_control_score(verdict), color=INK, linewidth=0.8, linestyle=(0, (3, 3)))
    beside = axes.get_yaxis_transform()
    for row, (standing, sentence) in enumerate(zip(standings, sentences, strict=True)):
        axes.plot([standing.low, standing.high], [row, row], color=INK, linewidth=1.4, clip_on=False)
        _draw_point(axes, standing.score, float(row), standing_kind(verdict, standing), standing.method)
        axes.text(1.05, row, _interval_text(standing), transform=beside, va="center", size=9, color=INK)
        axes.text(1.05 + 1.4 / _PLOT, row, sentence, transform=beside, va="center", size=9, color=INK)
    ends = [end for standing in standings for end in (standing.low, standing.high, standing.score) if not isnan(end)]
    axes.set(xlim=(min([0.0, *ends]) - 0.03, max([1.0, *ends]) + 0.03), ylim=(len(standings) - 0.4, -0.6))
    axes.set_xticks([0, 0.5, 1], ["0 worst", "½", "1 best"])
    axes.set_yticks(range(len(standings)), [_short(standing.method) for standing in standings], parse_math=False)
    axes.tick_params(axis="y", length=0)
    return axes.figure  # type: ignore[return-value]


def draw_costs(verdict: Verdict, costs: MethodCosts) -> "Figure":
    """The cost of one explanation, on a logarithmic axis, against the score of the method.

    Names are in a column on the right, evenly spaced in the order of the scores, so that they cannot overlap.
    """
    standings = [standing for standing in verdict.standings if standing.method in costs.by_method]
    axes = page_axes(6.4, max(3.0, 0.2 * len(standings)) + 0.45, (0.4, 2.0, 0.1, 0.35))
    axes.set_xscale("log")
    _set_cost_axis(axes, costs)
    ends = [end for standing in standings for end in (standing.low, standing.high, standing.score) if not isnan(end)]
    axes.set_ylim(min([0.0, *ends]) - 0.03, max([1.0, *ends]) + 0.03)
    axes.set_yticks([0, 0.5, 1], ["0", "½", "1"])
    axes.grid(color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    control = _control_score(verdict)
    axes.axhline(control, color=INK, linewidth=0.8, linestyle=(0, (3, 3)))
    axes.text(0.01, control, CONTROL, transform=axes.get_yaxis_transform(), va="bottom", size=9, color=INK)
    for place, standing in enumerate(standings):
        slot = 1 - (place + 0.5) / len(standings)
        _draw_labelled(axes, verdict, standing, costs.by_method[standing.method], slot)
    return axes.figure  # type: ignore[return-value]


def method_costs(report: Report) -> MethodCosts:
    """The cost of every method that has one; in seconds where all methods take about the same number of passes."""
    standings = report.verdicts[0].standings if report.verdicts else ()
    passes = {
        standing.method: standing.passes for standing in standings if standing.method != CONTROL and standing.passes
    }
    if passes and max(passes.values()) >= 10 * min(passes.values()):
        return MethodCosts("passes", passes)
    seconds = dict(zip(report.methods, report.seconds.tolist(), strict=True))
    return MethodCosts("seconds", {name: seconds[name] for name in passes if seconds[name] > 0})


def _set_cost_axis(axes: "Axes", costs: MethodCosts) -> None:
    """Whole powers of ten, written as passes or as time."""
    first = floor(log10(min(costs.by_method.values())))
    last = max(ceil(log10(max(costs.by_method.values()))), first + 1)
    axes.set_xlim(10.0**first * 0.8, 10.0**last * 1.25)
    powers = range(first, last + 1)
    names = [short_number(10.0**power) if costs.unit == "passes" else _time(power) for power in powers]
    axes.set_xticks([10.0**power for power in powers], names)
    axes.minorticks_off()


def _draw_labelled(axes: "Axes", verdict: Verdict, standing: Standing, cost: float, slot: float) -> None:
    axes.annotate(
        _short(standing.method),
        xy=(cost, standing.score),
        xytext=(1.03, slot),
        textcoords="axes fraction",
        va="center",
        size=9,
        color=INK,
        parse_math=False,
        arrowprops={"arrowstyle": "-", "color": INK, "alpha": 0.25, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
    )
    axes.plot([cost, cost], [standing.low, standing.high], color=INK, linewidth=1.4)
    _draw_point(axes, cost, standing.score, standing_kind(verdict, standing), standing.method)


def _draw_point(axes: "Axes", x: float, y: float, kind: Kind, method: str) -> None:
    shape, fill, edge = _MARKERS[kind]
    axes.plot(
        x,
        y,
        shape,
        markersize=7,
        markerfacecolor=fill,
        markeredgecolor=edge,
        markeredgewidth=1.4,
        clip_on=False,
        zorder=3,
        label=method,
    )


def _control_score(verdict: Verdict) -> float:
    return next((standing.score for standing in verdict.standings if standing.method == CONTROL), 0.5)


def _interval_text(standing: Standing) -> str:
    interval = "" if isnan(standing.low) else f"  [{standing.low:.2f}, {standing.high:.2f}]"
    return f"{standing.score:.2f}{interval}"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _time(power: int) -> str:
    """A power of ten seconds, in s, ms or µs."""
    for unit, least in (("s", 0), ("ms", -3), ("µs", -6)):
        if power >= least:
            return f"{10 ** (power - least):,} {unit}"
    return f"1e{power} s"


def _short(name: str) -> str:
    name = visible(name)
    return name if len(name) <= 26 else name[:25] + "…"
