"""Attributions in the terminal: the output, and for its most strongly explained parts the strongest sources."""

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.generation.attribution import Attribution
from heedful.render.attribution_figures import part_names, source_names
from heedful.render.attribution_text import meaning, passes_of
from heedful.render.text_strip import half_width, visible

_PARTS, _SOURCES, _LONGEST = 12, 4, 16


def print_attribution(attribution: Attribution, console: Console) -> None:
    """Prints the output, and a row for each of its most strongly explained parts, in reading order."""
    console.print(Text(visible(attribution.text), style="bold"))
    for note in attribution.notes:
        console.print(Text(f"Note: {visible(note)}", style="yellow"))
    largest = np.abs(attribution.scores).max(axis=1, initial=0.0)
    shown = sorted(np.argsort(-largest, kind="stable")[:_PARTS].tolist())
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("part", max_width=_LONGEST)
    measure, compared = attribution.settings.get("measure", "value"), attribution.settings.get("against") is not None
    table.add_column("difference" if compared else str(measure), justify="right", no_wrap=True)
    table.add_column("strongest sources", overflow="fold")
    names = part_names(attribution)
    for number in shown:
        value = f"{attribution.explanations[number].output:+.4g}"
        table.add_row(str(number + 1), Text(names[number]), value, Text(_strongest(attribution, number)))
    console.print(table)
    if len(attribution.outputs) > len(shown):
        n_more = len(attribution.outputs) - len(shown)
        console.print(Text(f"… and {n_more:,} parts with weaker sources; the page and the JSON have all.", style="dim"))
    console.print(Text(f"{meaning(attribution)} {passes_of(attribution)}", style="dim"))


def _strongest(attribution: Attribution, number: int) -> str:
    """The strongest sources of a part, each with its score and the half-width of its 95 % interval."""
    explanation, names = attribution.explanations[number], source_names(attribution)
    order = np.argsort(-np.abs(explanation.scores), kind="stable")[:_SOURCES].tolist()
    strongest = []
    for place in order:
        error = None if explanation.error is None else float(explanation.error[place])
        width = "" if error is None else f" {half_width(explanation, error)}"
        name = names[place] if len(names[place]) <= _LONGEST else f"{names[place][: _LONGEST - 1]}…"
        if explanation.scores[place]:
            strongest.append(f"{name} {explanation.scores[place]:+.3g}{width}")
    return " · ".join(strongest) or "all scores are 0"
