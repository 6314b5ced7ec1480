"""What a trust report says, in words and in its order: common to the terminal and the page."""

import re
from collections.abc import Iterable
from math import floor, isnan, log10
from typing import Literal, NamedTuple, final

from heedful.evaluation.report import Report
from heedful.evaluation.verdict import CONTROL, LEVEL, USES, Verdict

ARROWS = {"higher": "↑", "lower": "↓"}
_PARTICULAR = re.compile(r"\d[\d.,]*|'[^']*'")
"""Figures and quoted words: what of a reason belongs to one text."""
GLOSSES = {
    "sign lost": "attention is high on what speaks against the target",
    "value killed": "attention is high on what carries nothing",
    "heads cancel": "heads count it for and against, and their sum does not",
    "value typical": "it carries much, and the rest says the same without it",
    "replacement not neutral": "what stands in for it says as much",
    "masking law": "replacing it and deleting it do different things",
    "attention path": "the gradient sees how attention would move, removal what the word says",
    "query path": "the token that is read out acts through its own query",
    "company": "it does something else when other words are gone too",
    "saturation": "the probability is so near 0 or 1 that it hardly moves",
}
"""The reasons to differ, in a few words; docs/disagreement.md has the formulas."""


@final
class Skipped(NamedTuple):
    """Why some methods have no number for some metrics; no methods means whole texts, no metrics means all."""

    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    reason: str
    n_documents: int

    def __str__(self) -> str:
        texts = "1 text" if self.n_documents == 1 else f"{self.n_documents:,} texts"
        what = " – ".join(", ".join(names) for names in (self.methods, self.metrics) if names)
        return f"{what or 'not measured'}: {self.reason.rstrip('.')} ({texts})."


def in_order(report: Report) -> list[int]:
    """The methods from the best at the first use, which is to rank words, down; the control last."""
    first = [one.method for one in report.verdicts[0].standings] if report.verdicts else []
    place = {method: number for number, method in enumerate(first)}
    rows = sorted(range(len(report.methods)), key=lambda row: (place.get(report.methods[row], len(place)), row))
    return [row for row in rows if report.methods[row] != CONTROL] + [
        row for row in rows if report.methods[row] == CONTROL
    ]


def mark(report: Report, method: int, metric: int) -> Literal["better", "worse", ""]:
    """How a mean differs from the control's, beyond chance."""
    p = float(report.against_control[method, metric])
    if abs(p) >= LEVEL:
        return ""
    return "better" if p > 0 else "worse"


def amount(mean: float, low: float, high: float) -> tuple[str, str]:
    """A mean and half the width of its interval, with as many decimals as the interval leaves."""
    if isnan(mean):
        return "—", ""
    if isnan(low):
        return f"{mean:.3g}", "—"
    half = (high - low) / 2
    size = half or abs(mean) or 1.0
    if size < 1e-4 or abs(mean) >= 1e5:
        return f"{mean:.2e}", f"{half:.0e}"
    decimals = min(max(1 - floor(log10(size)), 0), 4) if half else 3
    # What rounds to nothing has no sign.
    return f"{round(mean, decimals) + 0.0:.{decimals}f}", f"{half:.{decimals}f}"


def cost(value: float) -> str:
    """Passes or milliseconds, short."""
    return "—" if isnan(value) else f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def about(report: Report) -> str:
    """On which texts, how many, and how often the model is right."""
    n = len(report.documents)
    texts = f"{n:,} texts" if len(report.measured) == n else f"{n:,} of {len(report.measured):,} texts"
    right = "" if report.accuracy is None else f", of which the model gets {report.accuracy:.0%} right"
    return f"{report.dataset}, {texts}{right}"


def asked_for(report: Report) -> str:
    """Target, scale and the like, as far as something was asked for."""
    said = [
        f"{name} {', '.join(value) if isinstance(value, list) else value}"
        for name, value in report.asked.items()
        if value not in (None, False, [], "") and name != "seed"
    ]
    return ", ".join(said)


def shared(report: Report) -> str:
    """How many thinned texts were wanted, and how many of them the model had to answer."""
    masks = report.masks
    return (
        f"Thinned texts: the explanations took {masks['explaining']:,}; the metrics wanted {masks['wanted']:,}, of "
        f"which the model had to answer {masks['asked']:,}."
    )


def to_what(verdict: Verdict) -> str:
    """The use of a verdict, as a phrase."""
    return f"for {verdict.use}" if verdict.use == "cheap screening" else f"to {verdict.use}"


def judged(verdict: Verdict) -> str:
    """What a verdict was made by."""
    return f"by {', '.join(verdict.metrics)}"


def unjudged(report: Report) -> str:
    """Why there is no verdict at all; empty if there is one."""
    if report.verdicts:
        return ""
    wanted = ", ".join(dict.fromkeys(name for names in USES.values() for name in names))
    return f"No use can be judged, for none of its metrics was measured on two methods: {wanted}."


_AS_THE_FIRST = ", and others likewise"


def skipped(report: Report) -> list[Skipped]:
    """Why there are no numbers, the most frequent first; reasons that differ in figures alone are one."""
    said: dict[str, str] = {}
    places: dict[tuple[str, str, str], set[int]] = {}
    for one in report.measured:
        reasons = {method: dict(known) for method, known in one.reasons.items()}
        for method, metric, reason in [
            *([("", "", one.skipped)] if one.skipped is not None else []),
            *((method, metric, reason) for method, known in reasons.items() for metric, reason in known.items()),
        ]:
            short = _without(reason, (metric, method))
            kind = _PARTICULAR.sub("#", short)
            first = said.setdefault(kind, short)
            if first != short and not first.endswith(_AS_THE_FIRST):
                said[kind] = f"{first.rstrip('.')}{_AS_THE_FIRST}"
            places.setdefault((kind, metric, method), set()).add(one.place)
    found: dict[tuple[str, tuple[str, ...]], tuple[list[str], set[int]]] = {}
    for kind, metric in dict.fromkeys((kind, metric) for kind, metric, _ in places):
        methods = tuple(m for m in ("", *report.methods) if (kind, metric, m) in places)
        metrics, where = found.setdefault((kind, methods), ([], set()))
        metrics.append(metric)
        where.update(*(places[kind, metric, method] for method in methods))
    listed = [
        Skipped(_named(methods), _named(metrics), said[kind], len(where))
        for (kind, methods), (metrics, where) in found.items()
    ]
    return sorted(listed, key=lambda one: -one.n_documents)


def causes(report: Report) -> list[str]:
    """How often each reason to differ was found, one phrase each; of a diagnosis, how often it proved right."""
    found = []
    for name, n in report.causes.items():
        behaved, tested = report.tested.get(name, (0, 0))
        right = f"; {behaved:,} of {tested:,} behaved so when taken out" if tested else ""
        found.append(f"{name} ({n:,}{right})")
    return found


def standing_of(report: Report) -> str:
    """Whether the reasons are exact or a diagnosis."""
    if report.exact:
        return "Exact: they are the model's own numbers."
    return "A diagnosis, not a proof: tested on the same texts by taking units out, where that was possible."


def _named(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name)


def _without(reason: str, names: Iterable[str]) -> str:
    """A reason without the name that it begins with, which is said before it."""
    for name in names:
        if name and reason.startswith((f"{name}: ", f"{name} ")):
            return reason[len(name) :].lstrip(": ")
    return reason
