"""A trust report in the terminal: methods × metrics, the verdicts, what was skipped."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from heedful.evaluation.report import Report
from heedful.evaluation.verdict import CONTROL, SIGNIFICANCE
from heedful.render.text_strip import visible
from heedful.render.trust_text import (
    ARROWS,
    cause_counts,
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

_MARKS = {"better": "●", "worse": "○", "": " "}
_STYLES = {"better": "bold green", "worse": "red", "": ""}
_BETWEEN, _EDGES = 3, 4


def print_report(report: Report, console: Console) -> None:
    """Prints the verdicts, the table in blocks that fit the width, causes, skipped values and notes."""
    parts: list[RenderableType] = [
        Text.assemble(("Trust: ", "bold"), visible(texts_summary(report))),
        Text(visible(f"{report.model}, seed {report.seed}; {request_summary(report)}"), style="dim"),
        Text(),
        *_verdicts(report),
        *_blocks(report, console.width),
        _legend(report),
        Text(),
        Text(masks_summary(report)),
    ]
    causes = cause_counts(report)
    if causes:
        parts.append(Text(f"Why they differ (number of units): {', '.join(causes)}. {causes_certainty(report)}"))
    parts += [Text(f"Skipped: {visible(str(reason))}", style="dim") for reason in skip_reasons(report)]
    parts += [Text(f"Note: {visible(note)}", style="yellow") for note in report.notes]
    console.print(Group(*parts))


def _blocks(report: Report, width: int) -> Iterator[Table]:
    """The columns as tables that fit the width; every table has the names of the methods."""
    rows = ranked_methods(report)
    names = [visible(report.methods[row]) for row in rows]
    columns = [*_standing(report, rows), *(_column(report, metric, rows) for metric in range(len(report.metrics)))]
    columns += [
        ("passes", [Text(short_number(float(report.passes[row]))) for row in rows]),
        ("ms", [Text(short_number(1000 * float(report.seconds[row]))) for row in rows]),
    ]
    room = width - max(map(len, names)) - _EDGES
    # A block has at least one column, even in a narrow terminal.
    taken: list[tuple[str, list[Text]]] = []
    for column in columns:
        if taken and sum(map(_wide, taken)) + _wide(column) > room:
            yield _block(names, taken)
            taken = []
        taken.append(column)
    yield _block(names, taken)


def _block(names: list[str], columns: list[tuple[str, list[Text]]]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1))
    table.add_column("method", no_wrap=True)
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True, vertical="bottom")
    for number, name in enumerate(names):
        cells = [cells[number] for _, cells in columns]
        if name == CONTROL:
            table.add_section()
        table.add_row(Text(name, style="dim" if name == CONTROL else "bold"), *cells)
    return table


def _column(report: Report, metric: int, rows: list[int]) -> tuple[str, list[Text]]:
    """The heading of a metric, broken at its hyphens, and its cells."""
    column = report.columns[metric]
    low, high = report.intervals
    cells = []
    for row in rows:
        mean, interval = mean_and_interval(*(float(numbers[row, metric]) for numbers in (report.means, low, high)))
        kind = significance_mark(report, row, metric)
        cells.append(
            Text.assemble((f"{_MARKS[kind]} {mean}", _STYLES[kind]), (f" {interval}" if interval else "", "dim"))
        )
    return f"{column.name.replace('-', '-' + chr(10))} {ARROWS[column.better]}", cells


def _standing(report: Report, rows: list[int]) -> list[tuple[str, list[Text]]]:
    """The score of each method, by which rows are ordered."""
    if not report.verdicts:
        return []
    score = {standing.method: f"{standing.score:.2f}" for standing in report.verdicts[0].standings}
    return [("score", [Text(score.get(report.methods[row], "—")) for row in rows])]


def _wide(column: tuple[str, list[Text]]) -> int:
    """The number of characters of a column, with the space beside it."""
    heading, cells = column
    return _BETWEEN + max(*(len(line) for line in heading.splitlines()), *(len(cell) for cell in cells))


def _legend(report: Report) -> Text:
    ranked = (
        f" score: between the worst (0) and the best (1) that the text allows, {use_phrase(report.verdicts[0])}."
        if report.verdicts
        else ""
    )
    return Text.assemble(
        ("●", _STYLES["better"]),
        (f" significantly better than {CONTROL}, ", "dim"),
        ("○", _STYLES["worse"]),
        (f" worse (p < {SIGNIFICANCE:g}, corrected for all cells). ↑ higher is better, ↓ lower is better. ", "dim"),
        (f"[low, high]: 95 % confidence interval. passes, ms: of one explanation.{ranked}", "dim"),
    )


def _verdicts(report: Report) -> Iterator[Text]:
    for verdict in report.verdicts:
        yield Text.assemble(
            (use_phrase(verdict).capitalize(), "bold"),
            f": {visible(verdict.sentence)} ",
            (f"({judged_by(verdict)})", "dim"),
        )
    if not report.verdicts:
        yield Text(no_verdict_reason(report))
