"""The sentences and the order of a trust report, shared by the terminal and the page."""

from collections.abc import Iterable
from math import floor, isnan, log10
from typing import Literal, NamedTuple, final

from heedful.evaluation.report import Report
from heedful.evaluation.verdict import CONTROL, SIGNIFICANCE, Verdict, metrics_by_use

ARROWS = {"higher": "↑", "lower": "↓"}
CAUSES = {
    "sign lost": "attention is high on a unit that is evidence against the target",
    "value killed": "attention is high on a unit whose value has no effect",
    "heads cancel": "the heads' contributions cancel in their sum",
    "value typical": "the unit contributes much, but without it the other words give the same output",
    "replacement not neutral": "the replacement token has an effect of its own",
    "masking law": "replacing the unit and deleting it have different effects",
    "attention path": "the gradient includes the change of attention, removal does not",
    "query path": "the read-out token also has an effect through its query",
    "company": "the unit's effect depends on which other words are present",
    "saturation": "the probability is so close to 0 or 1 that it hardly changes",
}
"""The causes of disagreement, in a few words; the formulas are in docs/disagreement.md."""


@final
class SkippedValues(NamedTuple):
    """Methods that have no value for metrics, and why; no methods: the whole text was skipped, no metrics: all."""

    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    reason: str
    n_documents: int

    def __str__(self) -> str:
        texts = "1 text" if self.n_documents == 1 else f"{self.n_documents:,} texts"
        what = " – ".join(", ".join(names) for names in (self.methods, self.metrics) if names)
        return f"{what or 'not measured'}: {self.reason.rstrip('.')} ({texts})."


def ranked_methods(report: Report) -> list[int]:
    """The methods by their score in the first verdict, the best first; the control last."""
    standings = report.verdicts[0].standings if report.verdicts else ()
    place = {standing.method: number for number, standing in enumerate(standings)}
    rows = sorted(range(len(report.methods)), key=lambda row: (place.get(report.methods[row], len(place)), row))
    return [row for row in rows if report.methods[row] != CONTROL] + [
        row for row in rows if report.methods[row] == CONTROL
    ]


def significance_mark(report: Report, method: int, metric: int) -> Literal["better", "worse", ""]:
    """Whether a mean is significantly better or worse than the control's."""
    p = float(report.against_control[method, metric])
    if abs(p) >= SIGNIFICANCE:
        return ""
    return "better" if p > 0 else "worse"


def mean_and_interval(mean: float, low: float, high: float) -> tuple[str, str]:
    """A mean and its interval, with as many decimals as the interval supports.

    Both ends are written: intervals over texts are not symmetric where values are skewed.
    """
    if isnan(mean):
        return "—", ""
    if isnan(low):
        return f"{mean:.3g}", "—"
    half = (high - low) / 2
    if half < 1e-4 or abs(mean) >= 1e5:
        return f"{mean:.2e}", f"[{low:.2e}, {high:.2e}]"
    decimals = min(max(1 - floor(log10(half)), 0), 4)
    # Zero has no sign.
    mean_text, low_text, high_text = (f"{round(value, decimals) + 0.0:.{decimals}f}" for value in (mean, low, high))
    return mean_text, f"[{low_text}, {high_text}]"


def short_number(value: float) -> str:
    """A number of passes or milliseconds, rounded; a dash for NaN."""
    return "—" if isnan(value) else f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def texts_summary(report: Report) -> str:
    """The data set, the number of texts and the accuracy of the model on them."""
    n = len(report.documents)
    texts = f"{n:,} texts" if len(report.measured) == n else f"{n:,} of {len(report.measured):,} texts"
    accuracy = "" if report.accuracy is None else f", model accuracy {report.accuracy:.0%}"
    return f"{report.dataset}, {texts}{accuracy}"


def request_summary(report: Report) -> str:
    """The options of the run that are not defaults, such as target and scale."""
    options = [
        f"{name} {', '.join(value) if isinstance(value, list) else value}"
        for name, value in report.asked.items()
        if value not in (None, False, [], "") and name != "seed"
    ]
    return ", ".join(options)


def masks_summary(report: Report) -> str:
    """The number of masked texts that the model evaluated, and of those that came from the cache."""
    masks = report.masks
    return (
        f"Masked texts evaluated: {masks['explaining']:,} for explanations, {masks['asked']:,} for metrics "
        f"({masks['wanted'] - masks['asked']:,} more from the cache)."
    )


def use_phrase(verdict: Verdict) -> str:
    """The use of a verdict as a phrase, such as "to rank words"."""
    return f"for {verdict.use}" if verdict.use == "cheap screening" else f"to {verdict.use}"


def judged_by(verdict: Verdict) -> str:
    """The metrics of a verdict."""
    return f"by {', '.join(verdict.metrics)}"


def no_verdict_reason(report: Report) -> str:
    """Why there is no verdict; empty if there is one."""
    if report.verdicts:
        return ""
    wanted = ", ".join(dict.fromkeys(name for names in metrics_by_use().values() for name in names))
    return f"There is no verdict: it needs one of these metrics on at least two methods: {wanted}."


def skip_reasons(report: Report) -> list[SkippedValues]:
    """Why values are missing, the most frequent reason first; reasons that differ only in what they name are merged."""
    merged: dict[tuple[str, tuple[str, ...]], tuple[list[str], set[int]]] = {}
    places = _reasons_by_wording(report)
    for wording, metric in dict.fromkeys((wording, metric) for wording, metric, _ in places):
        methods = tuple(m for m in ("", *report.methods) if (wording, metric, m) in places)
        metrics, texts = merged.setdefault((wording, methods), ([], set()))
        metrics.append(metric)
        texts.update(*(places[wording, metric, method] for method in methods))
    skipped = [
        SkippedValues(_named(methods), _named(metrics), wording, len(texts))
        for (wording, methods), (metrics, texts) in merged.items()
    ]
    return sorted(skipped, key=lambda reason: -reason.n_documents)


def _reasons_by_wording(report: Report) -> dict[tuple[str, str, str], set[int]]:
    """The texts of every (wording, metric, method). A kind of reason has one wording, that of its first text."""
    sentences: dict[tuple[str, str, str], dict[str, None]] = {}
    texts: dict[tuple[str, str, str], set[int]] = {}
    for document in report.measured:
        listed = [(method, metric, why) for method, by in document.reasons.items() for metric, why in by.items()]
        if document.skipped is not None:
            listed.insert(0, ("", "", document.skipped))
        for method, metric, reason in listed:
            key = reason.kind or reason.sentence, metric, method
            sentences.setdefault(key, {})[reason.sentence] = None
            texts.setdefault(key, set()).add(document.place)
    places: dict[tuple[str, str, str], set[int]] = {}
    for key, (first, *others) in sentences.items():
        wording = f"{first.rstrip('.')}; similar for other texts" if others else first
        places.setdefault((wording, *key[1:]), set()).update(texts[key])
    return places


def cause_counts(report: Report) -> list[str]:
    """How often each cause was found, one phrase each; for a diagnosis also how often a test confirmed it."""
    phrases = []
    for name, n in report.causes.items():
        confirmed, tested = report.tested.get(name, (0, 0))
        test = f"; {confirmed:,} of {tested:,} confirmed by removal" if tested else ""
        phrases.append(f"{name} ({n:,}{test})")
    return phrases


def causes_certainty(report: Report) -> str:
    """Whether the causes are exact or a diagnosis."""
    if report.exact:
        return "Exact: these are the model's own numbers."
    return "A diagnosis, not a proof: it was tested on the same texts by removing units, where possible."


def _named(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name)
