"""The page of a probe report: one file that fetches nothing."""

from collections.abc import Sequence
from math import isnan
from typing import Any, Literal

from heedful.evaluation.probe_report import ProbeOutcome, ProbeReport
from heedful.evaluation.probes import Finding
from heedful.render.probes.probe_text import (
    ANSWERS,
    answer_text,
    null_text,
    probed_texts,
    quantity_text,
    reason_text,
    use_rows,
)
from heedful.render.templating import fill_template


def probe_page(report: ProbeReport, skeleton: Literal["base.html", "cell.html"] = "base.html") -> str:
    """The verdict for each use of attention, then every probe; a notebook cell (`cell.html`) folds the probes."""
    context = {
        "skeleton": skeleton,
        "folded": skeleton == "cell.html",
        "report": report,
        "summary": probed_texts(report),
        "uses": _uses(report),
        "probes": [_probe(outcome) for outcome in report.outcomes],
    }
    return fill_template("probe.html", context)


def _uses(report: ProbeReport) -> list[dict[str, Any]]:
    """The rows of the verdict: a use, its answer, and the probes that it rests on."""
    rows = []
    for row in use_rows(report):
        probes = [{**_answer(outcome), "counts": row.counts(outcome)} for outcome in row.probes]
        answer = {"kind": row.verdict.answer, "answer": ANSWERS[row.verdict.answer]}
        rows.append({"use": row.use, **answer, "probes": probes})
    return rows


def _answer(outcome: ProbeOutcome) -> dict[str, Any]:
    """The name of a probe, its answer and the sentence behind it."""
    return {
        "name": outcome.probe.name,
        "kind": "none" if outcome.result is None else outcome.answer,
        "answer": answer_text(outcome),
        "why": reason_text(outcome),
    }


def _probe(outcome: ProbeOutcome) -> dict[str, Any]:
    """The section of a probe."""
    findings = () if outcome.result is None else outcome.result.findings
    return {
        **_answer(outcome),
        "question": outcome.probe.question,
        "source": outcome.probe.source,
        "use": outcome.probe.use,
        "shows": outcome.probe.shows,
        "does_not_show": outcome.probe.does_not_show,
        "settings": {name: "default" if value == "" else value for name, value in outcome.settings.items()},
        "findings": [
            {
                "what": finding.what,
                "value": quantity_text(finding.value),
                "bar": bar,
                "null": null_text(finding),
                "published": finding.published,
            }
            for finding, bar in zip(findings, finding_bars(findings), strict=True)
        ],
        "has_published": any(finding.published for finding in findings),
    }


def finding_bars(findings: Sequence[Finding]) -> list[dict[str, float]]:
    """The places of each finding and its null, in per cent of an axis that findings of the same quantity share.

    The first word of a finding names its quantity. Every axis includes 0.
    """
    rows = [_places(finding) for finding in findings]
    axes: dict[str, list[float]] = {}
    for finding, row in zip(findings, rows, strict=True):
        axes.setdefault(finding.what.split()[0], [0.0]).extend(row.values())
    bars = []
    for finding, row in zip(findings, rows, strict=True):
        axis = axes[finding.what.split()[0]]
        start, width = min(axis), max(axis) - min(axis) or 1.0
        places = {"zero": 0.0, **row} if row else {}
        bars.append({name: 3 + 94 * (place - start) / width for name, place in places.items()})
    return bars


def _places(finding: Finding) -> dict[str, float]:
    """What is drawn of a finding: the value, the null, and their ends where they have an interval."""
    places = {}
    for name, quantity in (("value", finding.value), ("null", finding.null)):
        if quantity is not None and not isnan(quantity.value):
            low, high = (quantity.value if isnan(end) else end for end in (quantity.low, quantity.high))
            places |= {name: quantity.value, f"{name}-low": low, f"{name}-high": high}
    return places
