"""Explanations and comparisons in the terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from heedful.evaluation.comparison import Comparison
from heedful.explanation import Explanation
from heedful.render.causes import cause_lines
from heedful.render.palette import blend
from heedful.render.patches import patch_strengths
from heedful.render.text_strip import half_width, model_passes, pieces, special_token_scores, visible, widest_interval

_PAPER = (255, 255, 255)
_SHOWN = {"seconds", "forwards", "backwards", "masks"}
_COLUMNS_WIDTH = 65


def print_result(result: Explanation | Comparison, console: Console) -> None:
    """Prints an explanation with a table of its strongest units, or a comparison with a strip per method."""
    if isinstance(result, Comparison):
        console.print(_comparison(result, console))
    else:
        console.print(_explanation(result, console))


def _comparison(comparison: Comparison, console: Console) -> RenderableType:
    first = comparison.explanations[0]
    parts: list[RenderableType] = [_heading(first), strips_table(comparison.explanations, console)]
    for reason, methods in comparison.reasons.items():
        parts.append(Text(f"{', '.join(methods)}: {reason}", style="dim"))
    causes = [] if comparison.causes is None else [Text(line) for line in cause_lines(comparison.causes)]
    return Group(*parts, *causes, *_notes(comparison), colour_legend(console))


def _explanation(explanation: Explanation, console: Console) -> RenderableType:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column(explanation.unit)
    table.add_column("score", justify="right")
    table.add_column("95 %", justify="right")
    rows = sorted(explanation.as_rows(), key=lambda row: -abs(row["score"]))  # type: ignore[arg-type]
    for row in rows[:20]:
        error = half_width(explanation, row["error"])  # type: ignore[arg-type]
        table.add_row(Text(visible(str(row["unit"]))), f"{row['score']:+.4g}", error)
    parts = [_heading(explanation), strips_table([explanation], console), table]
    if len(rows) > 20:
        parts.append(Text(f"… and {len(rows) - 20} weaker ones; as_rows() and the JSON output list all.", style="dim"))
    others = special_token_scores(explanation)
    if others:
        shown = ", ".join(f"{visible(name)} {value:+.3g}" for name, value in others.items())
        parts.append(Text(f"Special tokens and padding, not counted as words: {shown}.", style="dim"))
    more = {name: value for name, value in explanation.facts.items() if name not in _SHOWN and name not in others}
    facts = [f"{name.replace('_', ' ')} {value:.4g}" for name, value in more.items()]
    if facts:
        parts.append(Text(f"Other facts: {', '.join(facts)}.", style="dim"))
    return Group(*parts, *_notes(explanation), colour_legend(console))


def strips_table(explanations: Sequence[Explanation], console: Console) -> RenderableType:
    """A row per explanation: its facts, and the text in its colours."""
    coloured = _coloured(console)
    strips = [_tinted(explanation) if coloured else _in_numbers(explanation) for explanation in explanations]
    table = Table(box=box.SIMPLE, pad_edge=False)
    names = ["method", "signed", "95 %", "passes", "ms"][: 5 if console.width >= _COLUMNS_WIDTH else 3]
    for name in names:
        table.add_column(name, justify="right" if name == "ms" else "left", no_wrap=True)
    # In a narrow terminal the strips are below the table.
    beside = console.width >= _COLUMNS_WIDTH + 40
    if beside:
        table.add_column("text" if coloured else "strongest", overflow="fold")
    for explanation, strip in zip(explanations, strips, strict=True):
        milliseconds = f"{1000 * explanation.facts['seconds']:.1f}" if "seconds" in explanation.facts else ""
        columns = [
            "yes" if explanation.signed else "no",
            widest_interval(explanation),
            model_passes(explanation),
            milliseconds,
        ]
        table.add_row(*[explanation.method, *columns][: len(names)], *([strip] if beside else []))
    if beside:
        return table
    below = Table.grid(padding=(0, 1))
    below.add_column(no_wrap=True, style="bold")
    for explanation, strip in zip(explanations, strips, strict=True):
        below.add_row(explanation.method, strip)
    return Group(table, below)


def _tinted(explanation: Explanation) -> Text:
    strip = Text()
    if explanation.document.picture is not None:
        for row in patch_strengths(explanation).tolist():
            for strength in row:
                strip.append("  ", style=Style(bgcolor="#{:02x}{:02x}{:02x}".format(*blend(strength, _PAPER))))
            strip.append("\n")
        return strip
    for piece in pieces(explanation):
        if piece.strength is None:
            strip.append(piece.text, style="dim")
        else:
            tint = "#{:02x}{:02x}{:02x}".format(*blend(piece.strength, _PAPER))
            strip.append(piece.text, style=Style(color="#000000", bgcolor=tint, underline=piece.strength < 0))
    return strip


def _in_numbers(explanation: Explanation) -> Text:
    strongest = [f"{visible(unit)} {score:+.2g}" for unit, score in explanation.top(5) if score]
    return Text(" · ".join(strongest) or "all scores are 0")


def _coloured(console: Console) -> bool:
    return bool(console.color_system) and not console.no_color


def _heading(explanation: Explanation) -> Text:
    return Text.assemble((f"f, {visible(str(explanation.target))}: ", "dim"), (f"{explanation.output:+.4f}", "bold"))


def _notes(result: Explanation | Comparison) -> list[Text]:
    return [Text(f"Note: {visible(note)}", style="yellow") for note in result.notes]


def colour_legend(console: Console) -> Text:
    """What the colours or numbers of the strips mean."""
    if not _coloured(console):
        return Text("Scores: + for the target, − against it. Unsigned methods have no sign.", style="dim")
    green, red = ("#{:02x}{:02x}{:02x}".format(*blend(side, _PAPER)) for side in (0.8, -0.8))
    return Text.assemble(
        (" for ", f"#000000 on {green}"),
        " ",
        (" against ", f"underline #000000 on {red}"),
        (" the target; a stronger colour is a larger score, each method on its own scale. ", "dim"),
        ("exact: nothing was sampled; it does not mean faithful.", "dim"),
    )
