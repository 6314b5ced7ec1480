"""A probe report in the terminal: the verdict for each use, a sentence per probe, and where the rest is."""

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from heedful.evaluation.probe_report import ProbeReport
from heedful.evaluation.probes import Answer
from heedful.render.probes.probe_text import ANSWERS, answer_text, probed_texts, reason_text, use_rows
from heedful.render.text_strip import visible

_STYLES: dict[Answer, str] = {"yes": "bold green", "partly": "bold yellow", "no": "bold red", "unknown": "bold"}
_END = (
    "[low, high]: 95 % confidence interval over texts. An answer holds for this model and these texts, and says no "
    "more than its probes. The page has every number beside its null and the published one, and what each probe does "
    'not show: --out FOLDER, or heedful.show(report, "browser").'
)


def print_probes(report: ProbeReport, console: Console) -> None:
    """Prints the table of uses, what each probe found, and the notes."""
    parts: list[RenderableType] = [
        Text.assemble(("Probes: ", "bold"), visible(probed_texts(report))),
        Text(visible(f"{report.model}, seed {report.seed}: {report.description}"), style="dim"),
        Text(),
        Text("What attention can be used for in this model:", style="bold"),
        _verdict(report),
        Text("What each probe found:", style="bold"),
        _probes(report),
        Text(_END, style="dim"),
        *(Text(f"Note: {visible(note)}", style="yellow") for note in report.notes),
    ]
    console.print(Group(*parts))


def _verdict(report: ProbeReport) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1))
    for heading in ("use of attention", "answer", "by"):
        table.add_column(heading, no_wrap=heading == "answer")
    for row in use_rows(report):
        names = [f"{outcome.probe.name} {answer_text(outcome).partition(' ')[0]}" for outcome in row.verdict.rests_on]
        answer = Text(ANSWERS[row.verdict.answer], style=_STYLES[row.verdict.answer])
        table.add_row(Text(row.use), answer, Text(", ".join(names) or "no probe ran"))
    return table


def _probes(report: ProbeReport) -> Table:
    """Each probe's answer and the sentence behind it, in the order of the uses."""
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for row in use_rows(report):
        for outcome in row.probes:
            style = _STYLES[outcome.answer] if outcome.result is not None else "dim"
            answer = (answer_text(outcome), style)
            table.add_row(Text(outcome.probe.name), Text.assemble(answer, ". ", visible(reason_text(outcome))))
    return table
