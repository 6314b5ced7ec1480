"""Context reliance: the page, the notebook cell and the terminal, with the reliant tokens marked in the output."""

from dataclasses import replace

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.generation.attribution import Attribution
from heedful.generation.reliance import Reliance
from heedful.render.attribution_figures import part_names
from heedful.render.attribution_page import attribution_fragment, attribution_page
from heedful.render.text_strip import half_width, visible

_ROWS = 40
_LETTERS = 40
"""Of a cue, in the terminal."""


def reliance_page(reliance: Reliance) -> str:
    """The page of the attribution to the context, with the reliant tokens marked."""
    return attribution_page(_noted(reliance), _marks(reliance), reliance_legend(reliance))


def reliance_fragment(reliance: Reliance) -> str:
    """The same for a notebook cell."""
    return attribution_fragment(_noted(reliance), _marks(reliance), reliance_legend(reliance))


def reliance_legend(reliance: Reliance) -> str:
    """How many tokens rely on the context, and the error rate of that statement."""
    settings, n = reliance.settings, int(reliance.reliant.sum())
    kind = "sentences about other things" if settings["null"] == "foreign" else "its own words in random order"
    return (
        f"Marked: {n} of {len(reliance.tokens)} tokens depend on the context more than on {settings['n_null']} null "
        f"contexts ({kind}). If the context were such a context, and the output given without regard to it, the "
        f"probability that any token is marked would be at most {float(settings['alpha']):g}."
    )


def print_reliance(reliance: Reliance, console: Console) -> None:
    """Prints the output with the reliant tokens marked, and a row for each token with its numbers and cues."""
    marked, names = reliance.reliant, part_names(reliance.attribution)
    strip, document = Text(), reliance.attribution.document
    end = document.spans[-len(marked)][0]
    for (start, stop), mark in zip(document.spans[-len(marked) :], marked, strict=True):
        strip.append(visible(document.text[end:start]))
        strip.append(visible(document.text[start:stop]), style="bold underline" if mark else "")
        end = stop
    console.print(strip)
    for note in reliance.notes:
        console.print(Text(f"Note: {visible(note)}", style="yellow"))
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("token", "P-CXMI", "KL", "p"):
        table.add_column(name, justify="left" if name == "token" else "right", no_wrap=True)
    table.add_column("strongest cues", overflow="fold")
    # The reliant tokens first, if not all fit.
    places = np.arange(len(names)) if len(names) <= _ROWS else np.argsort(~marked, kind="stable")[:_ROWS]
    for place in places.tolist():
        values = f"{reliance.p_cxmi[place]:+.3g}", f"{reliance.kl[place]:.3g}", f"{reliance.output_p_value[place]:.3g}"
        style = "bold" if marked[place] else "dim"
        table.add_row(Text(visible(names[place])), *values, Text(_cues(reliance, place)), style=style)
    console.print(table)
    if len(names) > len(places):
        console.print(Text(f"… and {len(names) - len(places):,} tokens; as_rows() and the JSON have all.", style="dim"))
    console.print(Text(reliance_legend(reliance), style="dim"))


def _cues(reliance: Reliance, place: int) -> str:
    explanation = reliance.attribution.explanations[place]
    cues = []
    for unit, score, error in reliance.cues.get(place, ()):
        width = "" if error is None else f" {half_width(explanation, error)}"
        shown = unit if len(unit) <= _LETTERS else f"{unit[: _LETTERS - 1]}…"
        cues.append(f"{visible(shown)} {score:+.3g}{width}")
    return " · ".join(cues)


def _noted(reliance: Reliance) -> Attribution:
    """The attribution with the notes of the whole result."""
    return replace(reliance.attribution, notes=reliance.notes)


def _marks(reliance: Reliance) -> dict[int, str]:
    return {
        place: f"Relies on the context: P-CXMI {reliance.p_cxmi[place]:+.3g}, KL {reliance.kl[place]:.3g}, "
        f"p = {reliance.p_value[place]:.3g}, corrected {reliance.output_p_value[place]:.3g}."
        for place in np.flatnonzero(reliance.reliant).tolist()
    }
