"""A probe report in the terminal: the verdict for each use, the probes behind it, and their main findings."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from heedful.evaluation.probe_report import ProbeReport
from heedful.evaluation.probes import Answer
from heedful.render.probes.probe_text import (
    ANSWERS,
    answer_text,
    null_text,
    probed_texts,
    quantity_text,
    reason_text,
    use_rows,
)
from heedful.render.text_strip import visible

_STYLES: dict[Answer, str] = {"yes": "bold green", "partly": "bold yellow", "no": "bold red", "unknown": "bold"}
_MAIN = 3
"""The number of findings of a probe that the terminal shows; the page shows all."""


def print_probes(report: ProbeReport, console: Console) -> None:
    """Prints the table of uses, a line per probe, the main findings and the notes."""
    parts: list[RenderableType] = [
        Text.assemble(("Probes: ", "bold"), visible(probed_texts(report))),
        Text(visible(f"{report.model}, seed {report.seed}: {report.description}"), style="dim"),
        Text(),
        Text("What attention can be used for in this model, and the probes that say so:", style="bold"),
        _verdict(report),
        *_probes(report),
        Text(),
        *_findings(report),
        Text(
            "[low, high]: 95 % confidence interval over texts. An answer holds for this model and these texts. What a "
            'probe does not show is in the page: heedful.show(report, "browser"), or --out.',
            style="dim",
        ),
    ]
    parts += [Text(f"Note: {visible(note)}", style="yellow") for note in report.notes]
    console.print(Group(*parts))


def _verdict(report: ProbeReport) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1))
    for heading in ("use of attention", "answer", "by"):
        table.add_column(heading, no_wrap=heading == "answer")
    for row in use_rows(report):
        names = [outcome.probe.name for outcome in row.verdict.rests_on]
        answer = Text(ANSWERS[row.verdict.answer], style=_STYLES[row.verdict.answer])
        table.add_row(Text(row.use), answer, Text(", ".join(names) or "no probe ran"))
    return table


def _probes(report: ProbeReport) -> Iterator[Text]:
    """What each probe answers and why, in the order of the uses."""
    for row in use_rows(report):
        for outcome in row.probes:
            style = _STYLES[outcome.answer] if outcome.result is not None else "dim"
            name = (outcome.probe.name, "bold")
            yield Text.assemble(name, " ", (answer_text(outcome), style), ": ", visible(reason_text(outcome)))


def _findings(report: ProbeReport) -> Iterator[RenderableType]:
    """The first findings of each probe that have a null."""
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1))
    for heading in ("probe", "finding", "value", "null"):
        table.add_column(heading, no_wrap=heading in ("probe", "value"))
    for outcome in report.outcomes:
        findings = () if outcome.result is None else outcome.result.findings
        main = [finding for finding in findings if finding.null is not None][:_MAIN] or findings[:_MAIN]
        for number, finding in enumerate(main):
            cells = ("" if number else outcome.probe.name, finding.what, quantity_text(finding.value))
            table.add_row(*(Text(visible(cell)) for cell in (*cells, null_text(finding))))
    if table.row_count:
        yield table
    for outcome in report.outcomes:
        for note in () if outcome.result is None else outcome.result.notes:
            yield Text(visible(f"{outcome.probe.name}: {note}"), style="yellow")
