"""The page of a trust report: one file that fetches nothing."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from heedful.evaluation.journal import DocumentResult
from heedful.evaluation.report import Report
from heedful.evaluation.verdict import CHEAP, CONTROL, N_COMPARISONS, SIGNIFICANCE, Verdict
from heedful.render.chart import inline_svg
from heedful.render.comparison_page import method_summary
from heedful.render.palette import strengths
from heedful.render.templating import fill_template
from heedful.render.text_strip import short_title
from heedful.render.trust_figures import draw_costs, draw_forest, method_costs
from heedful.render.trust_text import (
    ARROWS,
    CAUSES,
    causes_certainty,
    judged_by,
    masks_summary,
    mean_and_interval,
    no_verdict_reason,
    ranked_methods,
    request_summary,
    short_number,
    significance_mark,
    skip_reasons,
    texts_summary,
    use_phrase,
)

_DOCUMENTS, _STRONGEST, _SHOWN = 20, 5, 160
_MARKS = {"better": "●", "worse": "○"}
# A cell without a value sorts below all others.
_LEAST = -1e308


def trust_page(report: Report, skeleton: Literal["base.html", "cell.html"] = "base.html") -> str:
    """The whole report: the verdict first, then the numbers behind it, which a notebook cell (`cell.html`) folds."""
    context = {
        "skeleton": skeleton,
        "folded": skeleton == "cell.html",
        "report": report,
        "control": CONTROL,
        "level": SIGNIFICANCE,
        "cheap": CHEAP,
        "n_comparisons": N_COMPARISONS,
        "arrows": ARROWS,
        "marks": _MARKS,
        "least": _LEAST,
        "strongest": _STRONGEST,
        "texts_summary": texts_summary(report),
        "request_summary": request_summary(report),
        "masks_summary": masks_summary(report),
        "no_verdict_reason": no_verdict_reason(report),
        "verdicts": [_verdict(verdict) for verdict in report.verdicts],
        "grid": [_grid_row(report, row) for row in ranked_methods(report)],
        "costs": _costs(report),
        "agreement": _agreement(report),
        "causes": _causes(report),
        "causes_certainty": causes_certainty(report),
        "skipped": [str(reason) for reason in skip_reasons(report)],
        "methods": [_method(report, report.methods[row]) for row in ranked_methods(report)],
        "documents": _documents(report),
    }
    return fill_template("trust.html", context)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    use = use_phrase(verdict).capitalize()
    return {
        "use": use,
        "recommended": verdict.recommended,
        "headline": verdict.headline,
        "details": verdict.details,
        "judged_by": judged_by(verdict),
        "forest": inline_svg(draw_forest(verdict), f"{use}: score of every method with its interval"),
    }


def _grid_row(report: Report, method: int) -> dict[str, Any]:
    costs = (float(report.passes[method]), 1000 * float(report.seconds[method]))
    return {
        "method": report.methods[method],
        "cells": [_cell(report, method, metric) for metric in range(len(report.metrics))],
        "costs": [(_LEAST if np.isnan(value) else value, short_number(value)) for value in costs],
    }


def _cell(report: Report, method: int, metric: int) -> dict[str, Any]:
    low, high = report.intervals
    mean, start, end = (float(numbers[method, metric]) for numbers in (report.means, low, high))
    if np.isnan(mean):
        return {"mean": None}
    text, interval_text = mean_and_interval(mean, start, end)
    n = int(report.counts[method, metric])
    interval = f"no confidence interval, {n} texts" if np.isnan(start) else f"{start:.4g} to {end:.4g}, {n} texts"
    return {
        "mean": mean,
        "text": text,
        "interval": interval_text,
        "mark": significance_mark(report, method, metric),
        "n": None if n == len(report.documents) else n,
        "title": f"{interval}, p = {abs(float(report.against_control[method, metric])):.2g}",
        "bar": None if np.isnan(start) else _bar(report, method, metric),
    }


def _bar(report: Report, method: int, metric: int) -> dict[str, float]:
    """Mean, interval and the control's mean, in per cent of the range of the metric's intervals."""
    low, high = (ends[:, metric] for ends in report.intervals)
    start, width = float(np.nanmin(low)), float(np.nanmax(high) - np.nanmin(low)) or 1.0
    means = report.means[:, metric]
    values = {
        "low": low[method],
        "mean": means[method],
        "high": high[method],
        "control": means[report.methods.index(CONTROL)],
    }
    return {name: 3 + 94 * (float(value) - start) / width for name, value in values.items() if not np.isnan(value)}


def _costs(report: Report) -> dict[str, Any] | None:
    costs = method_costs(report)
    if not costs.by_method:
        return None
    verdict = report.verdicts[0]
    unpriced = [standing.method for standing in verdict.standings if standing.method not in costs.by_method]
    return {
        "chart": inline_svg(draw_costs(verdict, costs), "cost against score"),
        "unit": costs.unit,
        "use": use_phrase(verdict),
        "missing": [method for method in unpriced if method != CONTROL],
    }


def _agreement(report: Report) -> list[tuple[str, list[tuple[float | None, str]]]]:
    order = ranked_methods(report)
    rows = report.agreement[np.ix_(order, order)].tolist()
    return [
        (report.methods[method], [(None if np.isnan(value) else value, "") for value in row])
        for method, row in zip(order, rows, strict=True)
    ]


def _causes(report: Report) -> list[dict[str, Any]]:
    most = max(report.causes.values(), default=1)
    rows = []
    for name, n in report.causes.items():
        confirmed, tested = report.tested.get(name, (0, 0))
        numbers = {"n": n, "percent": 100 * n / most, "confirmed": confirmed, "tested": tested}
        rows.append({"name": name, "meaning": CAUSES.get(name, ""), **numbers})
    return rows


def _method(report: Report, name: str) -> tuple[str, str, Mapping[str, Any]]:
    settings = report.settings.get(name)
    if settings is None:
        return name, "imported scores", {}
    return name, method_summary(str(settings.get("method", ""))) or "a user-defined explainer", settings


def _documents(report: Report) -> list[dict[str, Any]]:
    """The texts on which methods agree least, with the strongest units of each method."""
    order = sorted(report.documents, key=lambda document: (_mean_agreement(document), document.place))
    return [_document(report, document) for document in order[:_DOCUMENTS]]


def _mean_agreement(document: DocumentResult) -> float:
    """The mean agreement over all pairs of methods on a text, without the control."""
    values = [
        value
        for method, others in document.agreement.items()
        for other, value in others.items()
        if method < other and CONTROL not in (method, other)
    ]
    return float(np.mean(values)) if values else 1.0


def _document(report: Report, document: DocumentResult) -> dict[str, Any]:
    names = [report.methods[method] for method in ranked_methods(report)]
    return {
        "text": short_title(document.text, _SHOWN),
        "place": document.place,
        "predicted": short_title(document.predicted, _SHOWN),
        "label": dict(enumerate(report.classes)).get(-1 if document.label is None else document.label),
        "agreement": _mean_agreement(document),
        "rows": [
            (name, _strongest(report, document, name)) for name in names if name in document.scores and name != CONTROL
        ],
    }


def _strongest(report: Report, document: DocumentResult, method: str) -> list[dict[str, Any]]:
    scores = np.array(document.scores[method], dtype=np.float64)
    # A method that never gives a negative score has no sign.
    signed = any(min(other.scores.get(method, [0.0]), default=0.0) < 0 for other in report.documents)
    tints = strengths(scores)
    return [
        {
            "text": document.units[unit],
            "score": scores[unit],
            "strength": abs(tints[unit]),
            "side": ("neg" if tints[unit] < 0 else "pos") if signed else "none",
        }
        for unit in np.argsort(-np.abs(scores), kind="stable")[:_STRONGEST].tolist()
    ]
