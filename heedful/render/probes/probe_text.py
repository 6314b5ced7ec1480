"""The words and numbers of a probe report, for the terminal and the page."""

from collections.abc import Mapping
from typing import NamedTuple, final

from heedful.evaluation.probe_report import ProbeOutcome, ProbeReport, UseVerdict
from heedful.evaluation.probes import Answer, Finding
from heedful.render.trust_text import mean_and_interval
from heedful.statistics.quantity import Quantity

ANSWERS: Mapping[Answer, str] = {"yes": "✓ yes", "partly": "◐ in part", "no": "✗ no", "unknown": "? not decided"}
"""Every answer as a mark and a word, so that no colour is needed."""
NOT_RUN = "– did not run"


@final
class UseRow(NamedTuple):
    """One use of attention: its name, the answer, and every probe that judges it, those that did not run too."""

    use: str
    verdict: UseVerdict
    probes: tuple[ProbeOutcome, ...]

    def counts(self, outcome: ProbeOutcome) -> bool:
        """Whether the answer rests on this probe: undecided ones do not count beside decided ones."""
        return any(outcome is other for other in self.verdict.rests_on)


def use_rows(report: ProbeReport) -> list[UseRow]:
    """The verdicts with the probes behind them, in the order of the report; only uses that a named probe judges."""
    rows = []
    for verdict in report.verdicts:
        judging = tuple(outcome for outcome in report.outcomes if outcome.probe.use == verdict.use)
        if judging:
            rows.append(UseRow(use_title(verdict.use), verdict, judging))
    return rows


def use_title(use: str) -> str:
    """What attention is used for, as the beginning of a row."""
    return f"As {use}" if use.startswith(("the ", "an ")) else use.capitalize()


def answer_text(outcome: ProbeOutcome) -> str:
    """The answer of a probe with its mark, or that it did not run."""
    return NOT_RUN if outcome.result is None else ANSWERS[outcome.answer]


def reason_text(outcome: ProbeOutcome) -> str:
    """Why a probe answers so, or why it did not run."""
    return outcome.refusal if outcome.result is None else outcome.result.why


def quantity_text(quantity: Quantity) -> str:
    """A number with its 95 % confidence interval, if it has one."""
    mean, interval = mean_and_interval(*quantity)
    return mean if interval in ("", "—") else f"{mean} {interval}"


def null_text(finding: Finding) -> str:
    """The null of a finding with its interval, and what it is; empty where there is none."""
    if finding.null is None:
        return ""
    return f"{quantity_text(finding.null)}{f', {finding.null_is}' if finding.null_is else ''}"


def probed_texts(report: ProbeReport) -> str:
    """Which texts were probed, and how many."""
    return f"{report.dataset}, {report.n_texts:,} text{'s' * (report.n_texts != 1)}"
