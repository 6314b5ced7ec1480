"""Comparisons and trust reports of several models, in the terminal and as a page."""

from dataclasses import replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.evaluation.several import Comparisons, Reports
from heedful.explanation import Explanation
from heedful.render.patches import patches_view
from heedful.render.templating import fill_template
from heedful.render.terminal import colour_legend, strips_table
from heedful.render.text_strip import pieces, visible
from heedful.render.trust_terminal import print_report


def print_several(result: Comparisons | Reports, console: Console) -> None:
    """Prints a table of the models, then the words as every method and model colours them, or every report."""
    columns, rows = _models(result)
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column in ("model", *columns):
        table.add_column(column)
    for name, cells in rows:
        table.add_row(*(Text(visible(cell)) for cell in (name, *cells)))
    console.print(table)
    if isinstance(result, Reports):
        for name, report in result.reports.items():
            console.rule(Text(visible(name)))
            print_report(report, console)
        return
    by_method = _by_method(result).items()
    strips = [replace(e, method=visible(f"{method}, {name}")) for method, own in by_method for name, e in own.items()]
    console.print(strips_table(strips, console))
    for name, comparison in result.comparisons.items():
        for reason, methods in comparison.reasons.items():
            console.print(Text(visible(f"{name}, {', '.join(methods)}: {reason}"), style="dim"))
        for note in comparison.notes:
            console.print(Text(visible(f"Note on {name}: {note}"), style="yellow"))
    console.print(colour_legend(console))


def several_page(result: Comparisons | Reports) -> str:
    """The same as a page; of reports only the table of the models."""
    columns, rows = _models(result)
    title, groups, notes = "Which explanation to believe, by model", {}, []
    if isinstance(result, Comparisons):
        title = next(iter(result.comparisons.values())).document.text
        groups = {
            method: [(name, _strip(explanation)) for name, explanation in explanations.items()]
            for method, explanations in _by_method(result).items()
        }
        notes = [f"{name}: {note}" for name, comparison in result.comparisons.items() for note in comparison.notes]
    context = {"title": title, "columns": columns, "models": rows, "groups": groups, "note_sentences": notes}
    return fill_template("several.html", context)


def _models(result: Comparisons | Reports) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The columns of the table of models, and a row for each model."""
    if isinstance(result, Reports):
        uses = list(dict.fromkeys(use for by_use in result.recommended.values() for use in by_use))
        chosen = result.recommended.items()
        return uses, [(name, [by_use.get(use) or "no significant winner" for use in uses]) for name, by_use in chosen]
    firsts = [(name, comparison.explanations[0]) for name, comparison in result.comparisons.items()]
    return ["explained", "f(x)"], [(name, [str(first.target), f"{first.output:+.4f}"]) for name, first in firsts]


def _by_method(result: Comparisons) -> dict[str, dict[str, Explanation]]:
    """The explanations by method and model."""
    methods: dict[str, dict[str, Explanation]] = {}
    for name, comparison in result.comparisons.items():
        for explanation in comparison.explanations:
            methods.setdefault(explanation.method, {})[name] = explanation
    return methods


def _strip(explanation: Explanation) -> dict[str, Any]:
    drawn = explanation.document.picture is not None
    return {"drawing": patches_view(explanation) if drawn else None, "pieces": [] if drawn else pieces(explanation)}
