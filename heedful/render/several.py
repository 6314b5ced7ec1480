"""Comparisons and trust reports of several models, in the terminal and as a page."""

from collections.abc import Iterator
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.evaluation.several import SideBySide
from heedful.explanation import Explanation
from heedful.render.patches import patches_view
from heedful.render.templating import fill_template
from heedful.render.terminal import colour_legend, strips_table
from heedful.render.text_strip import pieces, visible
from heedful.render.trust_terminal import print_report


def print_several(result: SideBySide, console: Console) -> None:
    """Prints a table of the models, then the words as every method and model colours them, or every report."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    for row in _table(result):
        cells = [Text(visible(cell)) for cell in row]
        _ = table.add_row(*cells) if table.columns else [table.add_column(cell) for cell in cells]
    console.print(table)
    if warning := _warning(result):
        console.print(Text(warning, style="bold"))
    for name, report in result.reports.items():
        console.rule(Text(visible(name)))
        print_report(report, console)
    if result.comparisons:
        rows = [replace(e, method=visible(f"{e.method}, {name}")) for name, e in _by_method(result)]
        lines = [Text(visible(sentence), style="dim") for sentence in _sentences(result)]
        console.print(strips_table(rows, console), *lines, colour_legend(console), sep="\n")


def several_page(result: SideBySide) -> str:
    """The same as a page; of reports only the table of the models."""
    texts = [comparison.document.text for comparison in result.comparisons.values()]
    rows = [
        (e.method, name, pieces(e) if e.document.picture is None else [], e.document.picture and patches_view(e))
        for name, e in _by_method(result)
    ]
    title = texts[0] if texts else "Which explanation to believe, by model"
    context = {"title": title, "table": _table(result), "rows": rows, "sentences": _sentences(result)}
    return fill_template("several.html", {**context, "warning": _warning(result)})


def _warning(result: SideBySide) -> str:
    """What a reader of colours must know: one colour means different things if the targets differ; else empty."""
    names = {comparison.explanations[0].target.name for comparison in result.comparisons.values()}
    return "The models are explained for different targets. Name one target to compare them." if len(names) > 1 else ""


def _table(result: SideBySide) -> list[list[str]]:
    """A heading, and a row for each model: what is explained, or what to use for each use."""
    if result.reports:
        headlines = result.headlines
        uses = list(dict.fromkeys(use for by_use in headlines.values() for use in by_use))
        return [
            ["model", *uses],
            *([name, *(by_use.get(use, "") for use in uses)] for name, by_use in headlines.items()),
        ]
    firsts = [(name, comparison.explanations[0]) for name, comparison in result.comparisons.items()]
    return [["model", "explained", "f(x)"], *([name, str(e.target), f"{e.output:+.4f}"] for name, e in firsts)]


def _by_method(result: SideBySide) -> Iterator[tuple[str, Explanation]]:
    """Every explanation with the name of its model: all models of a method one after another."""
    every = [(name, e) for name, comparison in result.comparisons.items() for e in comparison.explanations]
    for method in dict.fromkeys(e.method for _, e in every):
        yield from ((name, e) for name, e in every if e.method == method)


def _sentences(result: SideBySide) -> list[str]:
    """Notes of every model, and why methods have no explanation."""
    lines = []
    for name, comparison in result.comparisons.items():
        lines += [f"{name}, {', '.join(methods)}: {reason}" for reason, methods in comparison.reasons.items()]
        lines += [f"Note on {name}: {note}" for note in comparison.notes]
    return lines
