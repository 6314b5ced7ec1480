"""What the probes of a model found, and what its attention can be used for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final, get_args

from heedful.errors import unknown_name
from heedful.evaluation.probes import Answer, AttentionUse, Finding, Probe, ProbeResult

USES: tuple[AttentionUse, ...] = get_args(AttentionUse)


@final
@dataclass(frozen=True)
class ProbeOutcome:
    """A probe with its settings, and what it found or why it did not run."""

    probe: Probe
    settings: Mapping[str, Any]
    result: ProbeResult | None
    refusal: str = ""
    seconds: float = 0.0

    @property
    def answer(self) -> Answer:
        """Whether attention passes the probe."""
        return "unknown" if self.result is None else self.result.answer

    def as_dict(self) -> dict[str, Any]:
        """The probe and its numbers, ready for JSON. Seconds are a fact of the run, not a result."""
        probe, result = self.probe, self.result
        return {
            "probe": probe.name,
            "question": probe.question,
            "source": probe.source,
            "use": probe.use,
            "settings": dict(self.settings),
            "answer": self.answer,
            "why": self.refusal if result is None else result.why,
            "findings": [] if result is None else [_as_dict(finding) for finding in result.findings],
            "shows": probe.shows,
            "does not show": probe.does_not_show,
        }

    def __repr__(self) -> str:
        why = self.refusal if self.result is None else self.result.why
        return f"<{self.probe.name}: {self.answer}. {why[:200]}>"


@final
class UseVerdict(NamedTuple):
    """Whether attention can be used for one thing in this model, and the probes that say so."""

    use: AttentionUse
    answer: Answer
    rests_on: tuple[ProbeOutcome, ...]

    @property
    def headline(self) -> str:
        """The answer in one sentence, with the probes it rests on."""
        if not self.rests_on:
            return "No probe that judges this was run."
        names = ", ".join(outcome.probe.name for outcome in self.rests_on)
        answer = {"yes": "Yes", "no": "No", "partly": "In part", "unknown": "Not decided by these texts"}[self.answer]
        return f"{answer}, by {names}."

    def __repr__(self) -> str:
        return f"<{self.use}: {self.headline[:200]}>"


@final
@dataclass(frozen=True, eq=False)
class ProbeReport:
    """The probes of one model on some texts, and the verdict for each use of its attention."""

    model: str
    description: str
    dataset: str
    n_texts: int
    unit: str
    seed: int
    outcomes: tuple[ProbeOutcome, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> tuple[UseVerdict, ...]:
        """What attention can be used for, use by use. Probes that were refused or undecided do not count."""
        return tuple(_verdict(use, self.outcomes) for use in USES)

    def __getitem__(self, name: str) -> ProbeOutcome:
        outcomes = {outcome.probe.name: outcome for outcome in self.outcomes}
        if name not in outcomes:
            raise unknown_name("probe in this report", name, outcomes)
        return outcomes[name]

    def as_dict(self) -> dict[str, Any]:
        """The whole report, ready for JSON."""
        return {
            "model": self.model,
            "description": self.description,
            "dataset": self.dataset,
            "texts": self.n_texts,
            "unit": self.unit,
            "seed": self.seed,
            "verdicts": [
                {"use": v.use, "answer": v.answer, "rests on": [o.probe.name for o in v.rests_on]}
                for v in self.verdicts
            ],
            "probes": [outcome.as_dict() for outcome in self.outcomes],
            "notes": list(self.notes),
        }

    def save(self, path: str | Path) -> None:
        """Writes a file by its ending, .html or .json; or a folder with both."""
        from heedful.render.probes.probe_files import save_probes

        save_probes(self, Path(path))

    def __repr__(self) -> str:
        answers = "; ".join(f"{outcome.probe.name}: {outcome.answer}" for outcome in self.outcomes)
        return f"<probes of {self.model} on {self.n_texts} texts: {answers[:200]}>"

    def _repr_html_(self) -> str:
        from heedful.render.probes.probe_page import probe_page

        return probe_page(self, "cell.html")


def _verdict(use: AttentionUse, outcomes: tuple[ProbeOutcome, ...]) -> UseVerdict:
    """The answer of the probes that judge a use, if they agree; where some pass and some fail, in part.

    A yes of a probe that tests a necessary condition alone does not count.
    """
    judging = tuple(outcome for outcome in outcomes if outcome.probe.use == use and outcome.result is not None)
    deciding = tuple(o for o in judging if o.answer != "unknown" and (o.probe.yes_counts or o.answer != "yes"))
    if not deciding:
        return UseVerdict(use, "unknown", judging)
    answers = {outcome.answer for outcome in deciding}
    return UseVerdict(use, deciding[0].answer if len(answers) == 1 else "partly", deciding)


def _as_dict(finding: Finding) -> dict[str, Any]:
    return {
        "what": finding.what,
        "value": finding.value.plain(),
        "null": None if finding.null is None else finding.null.plain(),
        "null is": finding.null_is,
        "published": finding.published,
        "key": finding.key,
    }
