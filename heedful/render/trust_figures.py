"""Pictures of a trust report, made of plain SVG: places, intervals, costs, agreement, causes.

Positions along a row are in per cent, so that a picture is as wide as its place and its words are never scaled.
"""

from collections.abc import Sequence
from html import escape
from math import ceil, floor, isnan, log10

import numpy as np

from heedful.evaluation.report import Report
from heedful.evaluation.verdict import CONTROL, LEVEL, Standing, Verdict
from heedful.render.text_strip import visible
from heedful.render.trust_text import GLOSSES, cost, in_order, to_what

_ROW, _MIDDLE = 26, 13


def forest(verdict: Verdict) -> str:
    """A row a method: where it lies between worst and best, its interval, and whether it is told apart."""
    control = next((one.score for one in verdict.standings if one.method == CONTROL), 0.5)
    rows = []
    for one in verdict.standings:
        kind, said = _standing(verdict, one)
        told = f"{one.score:.2f}, 95 % interval {one.low:.2f} to {one.high:.2f}"
        rows.append(
            f'<tr class="{kind}"><th scope=row>{escape(visible(one.method))}<td class="plot">'
            f'<svg role="img" aria-label="{told}" height="{_ROW}" width="100%">'
            f'<line class="chance" x1="{100 * control:.2f}%" x2="{100 * control:.2f}%" y1="0" y2="{_ROW}"/>'
            f"{_whisker(one.low, one.high)}"
            f"{_point(one.score, kind)}</svg>"
            f"<td class=number>{one.score:.2f} <small>{one.low:.2f} – {one.high:.2f}</small><td>{said}</tr>"
        )
    ticks = "".join(
        f'<text x="{100 * place:g}%" y="14" text-anchor="{anchor}">{name}</text>'
        for place, anchor, name in ((0, "start", "0 worst"), (0.5, "middle", "½"), (1, "end", "1 best"))
    )
    return (
        '<div class="wide"><table class="forest"><thead><tr><th>method<th>between a text\'s worst and best'
        f"<th>score, 95 %<th>told apart?</tr></thead><tbody>{''.join(rows)}</tbody><tfoot><tr><td>"
        f'<td class="plot"><svg aria-hidden="true" height="18" width="100%">{ticks}</svg><td><td></tr></tfoot>'
        "</table></div>"
    )


def _standing(verdict: Verdict, one: Standing) -> tuple[str, str]:
    """The kind of a row, and what is said of it."""
    if one.method == CONTROL:
        return "control", "the control"
    if one.method == verdict.recommended:
        return "best", f"recommended; from {CONTROL}: {_p(one.beats_control)}"
    if one.beats_control >= LEVEL:
        return "same", f"not from {CONTROL}: {_p(one.beats_control)}"
    if one.gain < 0:
        return "worse", f"worse than {CONTROL}: {_p(one.beats_control)}"
    if one.method in verdict.as_good:
        return "good", f"from {CONTROL}: {_p(one.beats_control)}; not from the best: {_p(one.behind)}"
    return "behind", f"from {CONTROL}: {_p(one.beats_control)}; behind the best: {_p(one.behind)}"


def _p(value: float) -> str:
    return "p &lt; 0.001" if value < 0.001 else f"p = {value:.2g}"


def _whisker(low: float, high: float) -> str:
    return f'<line class="whisker" x1="{100 * low:.2f}%" x2="{100 * high:.2f}%" y1="{_MIDDLE}" y2="{_MIDDLE}"/>'


def _point(place: float, kind: str) -> str:
    """A filled disc for the best and those like it, a ring for others, a square for the control."""
    if kind == "control":
        square = f'<rect x="-5" y="{_MIDDLE - 5}" width="10" height="10"/>'
        return f'<svg x="{100 * place:.2f}%" overflow="visible">{square}</svg>'
    return f'<circle class="{kind}" cx="{100 * place:.2f}%" cy="{_MIDDLE}" r="5.5"/>'


def bar(report: Report, method: int, metric: int) -> str:
    """A mean and its interval on the axis of its metric, which all methods share; the control's mean is a line."""
    low, high = report.intervals
    if isnan(low[method, metric]):
        return ""
    ends = np.concatenate([low[:, metric], high[:, metric]])
    known = ends[~np.isnan(ends)]
    start, width = float(known.min()), float(np.ptp(known)) or 1.0

    def place(value: float) -> float:
        return 3 + 94 * (value - start) / width

    control = float(report.means[report.methods.index(CONTROL), metric])
    line = (
        ""
        if isnan(control)
        else f'<line class="chance" x1="{place(control):.1f}%" x2="{place(control):.1f}%" y2="12"/>'
    )
    a, b = (place(float(end[method, metric])) for end in (low, high))
    return (
        f'<svg aria-hidden="true" width="100%" height="12">{line}'
        f'<line class="whisker" x1="{a:.1f}%" x2="{b:.1f}%" y1="6" y2="6"/>'
        f'<circle cx="{place(float(report.means[method, metric])):.1f}%" cy="6" r="3"/></svg>'
    )


_LEFT, _PLOT, _NAMES, _TOP, _HIGH = 40, 480, 200, 12, 300


def cost_plot(report: Report) -> str:
    """What an explanation costs, on a logarithmic axis, against where it lies between the worst and the best."""
    if not report.verdicts:
        return ""
    verdict = report.verdicts[0]
    costs, by_passes = _costs(report, verdict)
    shown = [one for one in verdict.standings if one.method in costs]
    if not shown:
        return ""
    first = floor(log10(min(costs.values())))
    last = max(ceil(log10(max(costs.values()))), first + 1)
    height = max(_HIGH, 18 * len(shown))
    control = next((one.score for one in verdict.standings if one.method == CONTROL), 0.5)

    def x(value: float) -> float:
        return _LEFT + _PLOT * (log10(value) - first) / (last - first)

    def y(score: float) -> float:
        return _TOP + height * (1 - score)

    right, bottom = _LEFT + _PLOT, _TOP + height
    parts = []
    for power in range(first, last + 1):
        at, name = x(10.0**power), cost(10.0**power) if by_passes else _time(power)
        parts.append(
            f'<line class="rule" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{bottom}"/>'
            f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{name}</text>'
        )
    for score, name in ((0.0, "0"), (0.5, "½"), (1.0, "1")):
        parts.append(
            f'<line class="rule" x1="{_LEFT}" x2="{right}" y1="{y(score):.1f}" y2="{y(score):.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{y(score) + 4:.1f}" text-anchor="end">{name}</text>'
        )
    parts.append(
        f'<line class="chance" x1="{_LEFT}" x2="{right}" y1="{y(control):.1f}" y2="{y(control):.1f}"/>'
        f'<text x="{_LEFT + 4}" y="{y(control) - 4:.1f}">{CONTROL}</text>'
    )
    beside = _apart([y(one.score) for one in shown], 17, _TOP + 4, bottom)
    for one, at in zip(shown, beside, strict=True):
        kind, _ = _standing(verdict, one)
        a, b = x(costs[one.method]), y(one.score)
        parts.append(
            f'<line class="leader" x1="{a:.1f}" y1="{b:.1f}" x2="{right + 12}" y2="{at:.1f}"/>'
            f'<line class="whisker" x1="{a:.1f}" x2="{a:.1f}" y1="{y(one.low):.1f}" y2="{y(one.high):.1f}"/>'
            f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="5.5"/>'
            f'<text x="{right + 16}" y="{at + 4:.1f}">{escape(_short(one.method))}</text>'
        )
    what = "passes through the model, forward and backward," if by_passes else "time"
    left_out = [one.method for one in verdict.standings if one.method not in costs and one.method != CONTROL]
    missing = f" Without a known cost: {escape(visible(', '.join(left_out)))}." if left_out else ""
    drawn = _drawing("cost against score", right + _NAMES, bottom + 24, parts)
    return (
        f"<p>Across: {what} of one explanation. Up: where it lies between the worst method of a text and the best, "
        f"{to_what(verdict)}, with its interval.{missing}</p>{drawn}"
    )


def _costs(report: Report, verdict: Verdict) -> tuple[dict[str, float], bool]:
    """The cost of every method that has one, and whether it is in passes or else in seconds.

    Where all methods take about as many passes, as on a model that pools, only the clock tells them apart.
    """
    passes = {one.method: one.passes for one in verdict.standings if one.method != CONTROL and one.passes}
    if passes and max(passes.values()) >= 10 * min(passes.values()):
        return passes, True
    seconds = dict(zip(report.methods, report.seconds.tolist(), strict=True))
    return {name: seconds[name] for name in passes if seconds[name] > 0}, False


def _time(power: int) -> str:
    """A power of ten seconds, in the unit one would say it in."""
    for unit, least in (("s", 0), ("ms", -3), ("µs", -6)):
        if power >= least:
            return f"{10 ** (power - least):,} {unit}"
    return f"1e{power} s"


def _apart(places: Sequence[float], gap: int, low: int, high: int) -> list[float]:
    """The places, which grow, moved as little as keeps them a gap apart: first down, then up from the lower end."""
    found = list(places)
    for index in range(1, len(found)):
        found[index] = max(found[index], found[index - 1] + gap)
    limit = float(high)
    for index in range(len(found) - 1, -1, -1):
        found[index] = max(float(low), min(found[index], limit))
        limit = found[index] - gap
    return found


_CELL, _LINE, _LETTER = 46, 24, 7.2


def agreement_map(report: Report) -> str:
    """Spearman's ρ between every two methods, the mean over texts, as tints with numbers."""
    rows = in_order(report)
    names = [_short(report.methods[row]) for row in rows]
    # Columns are named at a slant, so they rise by the sine of it.
    left = ceil(_LETTER * max(map(len, names))) + 8
    top = ceil(0.87 * left)
    parts = []
    for line, a in enumerate(rows):
        parts.append(
            f'<text x="{left - 6}" y="{top + _LINE * line + 16}" text-anchor="end">{escape(names[line])}</text>'
            f'<text transform="translate({left + _CELL * (line + 0.5) + 4:g} {top - 6}) rotate(-60)">'
            f"{escape(names[line])}</text>"
        )
        for column, b in enumerate(rows):
            value = float(report.agreement[a, b])
            x, y = left + _CELL * column, top + _LINE * line
            # What rounds to nothing has no side.
            said = "—" if isnan(value) else f"{round(value, 2) + 0.0:+.2f}"
            tint = "" if isnan(value) else f' class="{"neg" if value < 0 else "pos"}" style="--s:{abs(value):.3f}"'
            parts.append(
                f'<rect{tint} x="{x}" y="{y}" width="{_CELL - 2}" height="{_LINE - 2}"/>'
                f'<text x="{x + _CELL / 2 - 1:g}" y="{y + 16}" text-anchor="middle">{said}</text>'
            )
    width = left + _CELL * len(rows) + left // 2
    return _drawing("agreement between methods", width, top + _LINE * len(rows) + 4, parts)


def cause_bars(report: Report) -> str:
    """A bar a cause: on how many units of all texts it was found."""
    causes = report.causes
    most = max(causes.values(), default=1)
    rows = "".join(
        f"<tr><th scope=row>{escape(visible(name))}<br><small>{GLOSSES.get(name, '')}</small><td class=number>{n:,}"
        f"{_behaved(report, name)}"
        f'<td class="plot"><svg aria-hidden="true" height="16" width="100%">'
        f'<rect class="cause" y="2" height="12" width="{100 * n / most:.1f}%"/></svg></tr>'
        for name, n in causes.items()
    )
    return f'<div class="wide"><table class="forest causes"><tbody>{rows}</tbody></table></div>'


def _behaved(report: Report, name: str) -> str:
    behaved, tested = report.tested.get(name, (0, 0))
    return f"<td class=number>{behaved:,} of {tested:,} behaved so" if tested else "<td>"


def _drawing(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    return (
        f'<div class="wide"><svg class="drawing" role="img" direction="ltr" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{title}</title>{"".join(parts)}</svg></div>'
    )


def _short(name: str) -> str:
    name = visible(name)
    return name if len(name) <= 26 else name[:25] + "…"
