"""The page of a probe report: one file that fetches nothing."""

from typing import Any, Literal

from heedful.evaluation.probe_report import ProbeOutcome, ProbeReport
from heedful.render.chart import inline_svg
from heedful.render.probes.probe_figures import draw_findings, finding_groups
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
    probes = [_probe(outcome) for outcome in report.outcomes]
    context = {
        "skeleton": skeleton,
        "folded": skeleton == "cell.html",
        "report": report,
        "summary": probed_texts(report),
        "uses": _uses(report),
        "probes": probes,
        "has_charts": any(probe["charts"] for probe in probes),
    }
    return fill_template("probe.html", context)


def _uses(report: ProbeReport) -> list[dict[str, Any]]:
    """The rows of the verdict: a use, its answer, and the probes that it rests on."""
    rows = []
    for row in use_rows(report):
        probes = [{**_answer(outcome), "counts": row.counts(outcome)} for outcome in row.probes]
        answer = {"kind": row.verdict.answer, "answer": ANSWERS[row.verdict.answer]}
        rows.append({"use": row.use, **answer, "headline": row.verdict.headline, "probes": probes})
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
        "shows": outcome.probe.shows,
        "does_not_show": outcome.probe.does_not_show,
        "settings": {name: "default" if value == "" else value for name, value in outcome.settings.items()},
        "notes": () if outcome.result is None else outcome.result.notes,
        "findings": [
            {
                "what": finding.what,
                "value": quantity_text(finding.value),
                "null": null_text(finding),
                "published": finding.published or "—",
            }
            for finding in findings
        ],
        "has_published": any(finding.published for finding in findings),
        "charts": [
            {"title": group.title, "svg": inline_svg(draw_findings(group), f"{outcome.probe.name}: {group.title}")}
            for group in finding_groups(findings)
        ],
    }
