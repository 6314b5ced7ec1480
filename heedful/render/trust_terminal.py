"""A trust report in a terminal: methods × metrics, the verdict, what was skipped."""

from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from heedful.evaluation.report import Report
from heedful.evaluation.verdict import CONTROL, LEVEL
from heedful.render.text_strip import visible
from heedful.render.trust_text import (
    ARROWS,
    about,
    amount,
    asked_for,
    causes,
    cost,
    in_order,
    judged,
    mark,
    shared,
    skipped,
    standing_of,
    to_what,
    unjudged,
)

_MARKS = {"better": "●", "worse": "○", "": " "}
_STYLES = {"better": "bold green", "worse": "red", "": ""}
_BETWEEN, _EDGES = 3, 4


def print_report(report: Report, console: Console) -> None:
    """The table, in blocks that fit the width; the verdicts; reasons, notes and costs."""
    parts: list[RenderableType] = [
        Text.assemble(("Trust: ", "bold"), visible(about(report))),
        Text(visible(f"{report.model}, seed {report.seed}; {asked_for(report)}"), style="dim"),
        *_blocks(report, console.width),
        _legend(report),
        Text(),
        *_verdicts(report),
        Text(),
        Text(shared(report)),
    ]
    found = causes(report)
    if found:
        parts.append(Text(f"Why they differ, and on how many units: {', '.join(found)}. {standing_of(report)}"))
    parts += [Text(f"Skipped: {visible(str(one))}", style="dim") for one in skipped(report)]
    parts += [Text(f"Note: {visible(note)}", style="yellow") for note in report.notes]
    console.print(Group(*parts))


def _blocks(report: Report, width: int) -> Iterator[Table]:
    """What does not fit beside each other stands below, each table with the methods' names."""
    rows = in_order(report)
    names = [visible(report.methods[row]) for row in rows]
    columns = [*_standing(report, rows), *(_column(report, metric, rows) for metric in range(len(report.metrics)))]
    columns += [
        ("passes", [Text(cost(float(report.passes[row]))) for row in rows]),
        ("ms", [Text(cost(1000 * float(report.seconds[row]))) for row in rows]),
    ]
    room = width - max(map(len, names)) - _EDGES
    # One column is taken in any case, however narrow the terminal is.
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
    """A metric's heading, broken at its hyphens, and its cells."""
    column = report.columns[metric]
    low, high = report.intervals
    cells = []
    for row in rows:
        said, half = amount(*(float(numbers[row, metric]) for numbers in (report.means, low, high)))
        kind = mark(report, row, metric)
        text = Text.assemble((f"{_MARKS[kind]} {said}", _STYLES[kind]), (f" ±{half}" if half else "", "dim"))
        cells.append(text)
    return f"{column.name.replace('-', '-' + chr(10))} {ARROWS[column.better]}", cells


def _standing(report: Report, rows: list[int]) -> list[tuple[str, list[Text]]]:
    """What the methods are ordered by."""
    if not report.verdicts:
        return []
    score = {one.method: f"{one.score:.2f}" for one in report.verdicts[0].standings}
    return [("score", [Text(score.get(report.methods[row], "—")) for row in rows])]


def _wide(column: tuple[str, list[Text]]) -> int:
    """How many characters a column takes, with the space beside it."""
    heading, cells = column
    return _BETWEEN + max(*(len(line) for line in heading.splitlines()), *(len(cell) for cell in cells))


def _legend(report: Report) -> Text:
    ranked = (
        f" score: between the worst method of a text (0) and the best (1), {to_what(report.verdicts[0])}."
        if report.verdicts
        else ""
    )
    return Text.assemble(
        ("●", _STYLES["better"]),
        (f" better than {CONTROL}, ", "dim"),
        ("○", _STYLES["worse"]),
        (f" worse, beyond chance (p < {LEVEL:g}, corrected for all cells). ↑ higher is better, ↓ lower. ", "dim"),
        (f"±: half the 95 % interval over texts. passes, ms: of one explanation.{ranked}", "dim"),
    )


def _verdicts(report: Report) -> Iterator[Text]:
    for verdict in report.verdicts:
        yield Text.assemble(
            (to_what(verdict).capitalize(), "bold"),
            f": {visible(verdict.sentence)} ",
            (f"({judged(verdict)})", "dim"),
        )
    if not report.verdicts:
        yield Text(unjudged(report))
