"""A trust report as a self-contained page: nothing is fetched, everything is escaped, light and dark."""

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from inspect import getdoc
from typing import Any

import numpy as np

from heedful.evaluation.journal import Measured
from heedful.evaluation.report import Report
from heedful.evaluation.verdict import CHEAP, CONTROL, LEVEL
from heedful.explainers import methods as known_methods
from heedful.render.palette import strengths
from heedful.render.text_strip import visible
from heedful.render.trust_figures import agreement_map, bar, cause_bars, cost_plot, forest
from heedful.render.trust_text import (
    ARROWS,
    about,
    amount,
    asked_for,
    cost,
    in_order,
    judged,
    mark,
    shared,
    skipped,
    standing_of,
    to_what,
    unjudged,
)

_DOCUMENTS, _STRONGEST, _SHOWN = 20, 5, 160
_MARKS = {"better": "●", "worse": "○", "": ""}
# Sorting puts what has no number last, where it began with the largest.
_LEAST = -1e308


def trust_page(report: Report) -> str:
    """The whole report: the verdict first, then what it stands on."""
    parts = [
        f"<h1>Which explanation to believe</h1>{_head(report)}",
        f"<h2>Verdict</h2>{_verdicts(report)}",
        f"<h2>How they stand</h2>{_forests(report)}" if report.verdicts else "",
        f"<h2>Every method on every metric</h2>{_grid(report)}",
        f"<h2>What the metrics ask</h2>{_metrics(report)}",
        _titled("What it costs", cost_plot(report)),
        f"<h2>Agreement</h2>{_agreement(report)}",
        _titled("Why they differ", _causes(report)),
        f"<h2>What was not measured</h2>{_skipped(report)}",
        f"<h2>Methods and settings</h2>{_settings(report)}",
        _titled("Some texts", _documents(report)),
    ]
    title = escape(visible(f"trust, {report.dataset}"))
    # In a notebook only what is inside the body is kept, so the style hangs on the div.
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>heedful: {title}</title></head>"
        f'<body class="heedful"><style>{_asset("page.css")}{_asset("trust.css")}</style><div class="heedful trust">'
        f"{''.join(parts)}</div><script>{_asset('page.js')}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return (files("heedful.render") / name).read_text(encoding="utf-8")


def _titled(title: str, content: str) -> str:
    return f"<h2>{title}</h2>{content}" if content else ""


def _said(text: str) -> str:
    return escape(visible(text))


def _head(report: Report) -> str:
    n_methods = len(report.methods) - 1
    notes = "".join(f'<p class="note" dir="auto">{_said(note)}</p>' for note in report.notes)
    return (
        f"<p><b>{_said(about(report))}</b>; model <code>{_said(report.model)}</code>, classes "
        f"{_said(', '.join(report.classes[:10]))}{' …' if len(report.classes) > 10 else ''}; {n_methods} methods and "
        f"the control <i>{CONTROL}</i>, {len(report.metrics)} metrics, seed {report.seed}. "
        f"Asked for: {_said(asked_for(report)) or 'nothing in particular'}. {shared(report)}</p>{notes}"
    )


def _verdicts(report: Report) -> str:
    if not report.verdicts:
        return f"<p>{escape(unjudged(report))}</p>"
    cards = []
    for verdict in report.verdicts:
        first, _, rest = verdict.sentence.partition(";")
        none = "" if verdict.recommended else ' class="none"'
        cards.append(
            f"<div{none}><dt>{escape(to_what(verdict).capitalize())}</dt><dd><b>{_said(first.rstrip('.'))}</b>"
            f"{_after('<br>', _said(rest.strip()))}<br><small>{_said(judged(verdict))}</small></dd></div>"
        )
    return (
        f'<dl class="verdict">{"".join(cards)}</dl><p class="legend">The best is recommended of the methods that are '
        f"better than scores drawn at random, beyond chance: paired over texts, p &lt; {LEVEL:g} after Holm's "
        "correction for all pairs of methods in all uses. If there is none, no method wins, which is an answer. It "
        f"holds for this model and these texts. Cheap: at most {CHEAP} passes through the model.</p>"
    )


def _forests(report: Report) -> str:
    drawn = "".join(f"<h3>{escape(to_what(verdict).capitalize())}</h3>{forest(verdict)}" for verdict in report.verdicts)
    return (
        "<p>On every text and metric a method lies somewhere between the worst of them (0) and the best (1); the score "
        "is the mean, with a bootstrap interval over texts. A line goes through the control. Full discs: the best and "
        "those not told apart from it; rings: behind it (green), not told apart from the control (grey), worse than it "
        f"(orange); the square is the control.</p>{drawn}"
    )


def _grid(report: Report) -> str:
    head = "".join(
        f'<th><button type="button" title="{_said(column.question)}">{_said(column.name)} {ARROWS[column.better]}'
        "</button>"
        for column in report.columns
    )
    rows = []
    for method in in_order(report):
        cells = "".join(_cell(report, method, metric) for metric in range(len(report.metrics)))
        spent = "".join(
            f'<td data-v="{_LEAST if np.isnan(value) else value!r}">{cost(value)}'
            for value in (float(report.passes[method]), 1000 * float(report.seconds[method]))
        )
        kind = ' class="control"' if report.methods[method] == CONTROL else ""
        rows.append(f"<tr{kind}><th scope=row>{_said(report.methods[method])}{cells}{spent}</tr>")
    return (
        "<p>Means over texts, half the width of the 95 % bootstrap interval, and both as a bar on the metric's own "
        "axis, where a dashed line is the control. ↑ higher is better, ↓ lower. <span class=better>●</span> better "
        f"than {CONTROL} beyond chance, <span class=worse>○</span> worse (p &lt; {LEVEL:g}, corrected for all cells); "
        "the rest is not told apart from it. Click a heading to sort.</p>"
        f'<div class="wide"><table class="grid sortable"><thead><tr><th>method{head}<th><button type="button">passes'
        f'</button><th><button type="button">ms</button></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _cell(report: Report, method: int, metric: int) -> str:
    low, high = report.intervals
    mean, a, b = (float(numbers[method, metric]) for numbers in (report.means, low, high))
    if np.isnan(mean):
        return f'<td data-v="{_LEAST}">—'
    said, half = amount(mean, a, b)
    kind = mark(report, method, metric)
    n = int(report.counts[method, metric])
    few = "" if n == len(report.documents) else f" <small>n = {n}</small>"
    interval = "one text has no interval" if np.isnan(a) else f"{a:.4g} to {b:.4g}, {n} texts"
    title = f"{interval}, p = {abs(float(report.against_control[method, metric])):.2g}"
    shown = f'<span class="{kind}">{_MARKS[kind]} {said}</span>' if kind else said
    return f'<td data-v="{mean!r}" title="{title}">{shown} <small>± {half}</small>{few}{bar(report, method, metric)}'


def _metrics(report: Report) -> str:
    items = "".join(
        f"<dt>{_said(column.name)} {ARROWS[column.better]} {escape(column.better)} is better</dt>"
        f"<dd>{_said(column.question)} <i>Not for</i> {_said(column.not_for)} <small>{_said(column.source)}"
        f"{_after('; ', _listed(column.settings))}</small></dd>"
        for column in report.columns
    )
    return f'<dl class="about">{items}</dl>'


def _after(mark: str, text: str) -> str:
    return f"{mark}{text}" if text else ""


def _listed(settings: Mapping[str, Any]) -> str:
    return _said(", ".join(f"{name}={value}" for name, value in settings.items()))


def _agreement(report: Report) -> str:
    return (
        "<p>Spearman's rank correlation of the scores, of their absolute values where either method is unsigned: the "
        "mean over texts. This is a description and never a score: two methods may agree and both be wrong (Neely "
        f"et al., 2021, arXiv:2105.03287), and no verdict above looks at it.</p>{agreement_map(report)}"
    )


def _causes(report: Report) -> str:
    if not report.causes:
        return ""
    return (
        "<p>On how many units, of all texts together, each reason to differ was found. <code>heedful compare</code> "
        f"shows them word by word for one text. {standing_of(report)}</p>{cause_bars(report)}"
    )


def _skipped(report: Report) -> str:
    items = "".join(f'<li dir="auto">{_said(str(one))}</li>' for one in skipped(report))
    return f"<ul>{items}</ul>" if items else "<p>Nothing was skipped: every method has a number for every metric.</p>"


def _settings(report: Report) -> str:
    known = known_methods()
    rows = []
    for method in in_order(report):
        name = report.methods[method]
        settings = report.settings.get(name)
        kind = (settings or {}).get("method")
        about = (getdoc(known[kind]) or "").splitlines()[0] if kind in known else ""
        about = about or ("an explainer of the user's" if settings is not None else "read in, and not made again")
        rows.append(f"<tr><th scope=row>{_said(name)}<td>{_said(about)}<td>{_listed(settings or {})}</tr>")
    return (
        '<div class="wide"><table class="loose"><thead><tr><th>method<th>what it is<th>settings</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _documents(report: Report) -> str:
    """The texts on which methods agree least, with the strongest units of each method."""
    order = sorted(report.documents, key=lambda one: (_together(one), one.place))[:_DOCUMENTS]
    items = "".join(_document(report, one) for one in order)
    n = len(order)
    which = f"The {n} texts" if n == len(report.documents) else f"The {n} of {len(report.documents):,} texts"
    return (
        f"<p>{which} on which the methods agree least, the least first, and the {_STRONGEST} strongest units of each: "
        '<span class="w pos" style="--s:.8">for</span> and <span class="w neg" style="--s:.8">against</span> the '
        f"target, grey where a method takes no side, each on its own scale.</p>{items}"
    )


def _together(one: Measured) -> float:
    """The mean agreement of every two methods on a text, without the control."""
    found = [
        value
        for method, others in one.agreement.items()
        for other, value in others.items()
        if method < other and CONTROL not in (method, other)
    ]
    return float(np.mean(found)) if found else 1.0


def _document(report: Report, one: Measured) -> str:
    text = visible(one.text[:_SHOWN]) + (" …" if len(one.text) > _SHOWN else "")
    label = "" if one.label is None or one.label >= len(report.classes) else f", labelled {report.classes[one.label]}"
    rows = []
    for method in in_order(report):
        name = report.methods[method]
        if name in one.scores and name != CONTROL:
            rows.append(
                f'<tr><th scope=row>{_said(name)}<td class="words" dir="auto">{_strongest(report, one, name)}</tr>'
            )
    return (
        f"<details><summary><bdi>{escape(text)}</bdi> <small>text {one.place}, predicted {_said(one.predicted)}"
        f"{_said(label)}, mean ρ {_together(one):.2f}</small></summary>"
        f'<div class="wide"><table><tbody>{"".join(rows)}</tbody></table></div></details>'
    )


def _strongest(report: Report, one: Measured, method: str) -> str:
    scores = np.array(one.scores[method], dtype=np.float64)
    # A method that never gives a negative score takes no side.
    sided = any(min(other.scores.get(method, [0.0]), default=0.0) < 0 for other in report.documents)
    tints = strengths(scores)
    words = []
    for unit in np.argsort(-np.abs(scores), kind="stable")[:_STRONGEST].tolist():
        side = ("neg" if tints[unit] < 0 else "pos") if sided else "none"
        words.append(
            f'<bdi class="w {side}" style="--s:{abs(tints[unit]):.3f}" title="{scores[unit]:+.4g}">'
            f"{_said(one.units[unit])}</bdi>"
        )
    return " ".join(words)
