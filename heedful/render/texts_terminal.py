"""Explanations of many texts in the terminal: at most 40 lines."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from heedful.explanations import Explanations
from heedful.render.overview import TargetWords, classes_of, overview
from heedful.render.text_strip import visible

_TARGETS = 3
_WORD_ROWS = 15


def print_texts(explanations: Explanations, console: Console) -> None:
    """Prints the counts, the strongest words of each target, and the three worst mistakes."""
    n_targets = len({item.target.name for item in explanations if not item.refused})  # type: ignore[union-attr]
    sentences, targets, mistakes = overview(explanations, _WORD_ROWS // max(1, min(n_targets, _TARGETS)))
    parts: list[RenderableType] = [Text(visible(sentence)[:300]) for sentence in sentences]
    for target in targets[:_TARGETS]:
        parts += _target(target) if target.words else []
    if n_targets > _TARGETS:
        parts.append(Text(f"… and {n_targets - _TARGETS} other targets; global_words() lists all.", style="dim"))
    if len(mistakes):
        parts.append(Text("The worst mistakes", style="bold"))
    for place, item in enumerate(mistakes[:3]):
        words = " · ".join(f"{visible(unit)} {score:+.2g}" for unit, score in item.top(3))
        text = item.text if item.refused else item.document.text  # type: ignore[union-attr]
        parts.append(_line(f"{mistakes.ids[place]}: {words} ({classes_of(mistakes, place)})"))
        parts.append(_line(text, "dim"))
    console.print(Group(*parts))


def _target(target: TargetWords) -> list[RenderableType]:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("word", "mean score [95 %]", "texts"):
        table.add_column(name, justify="right" if name == "texts" else "left", no_wrap=True, header_style="dim")
    for row in target.words:
        interval = f" [{row.low:+.2g}, {row.high:+.2g}]" if row.low == row.low else ""
        table.add_row(Text(visible(row.word)), f"{row.mean:+.2g}{interval}", str(row.n_texts))
    heading = _line(f"Strongest words for {target.target} (texts: {target.n_texts:,})", "bold")
    wrong = ", ".join(f"{row.word} {row.mean:+.2g} ({row.n_texts})" for row in target.wrong)
    mistakes = [_line(f"in its {target.n_wrong} mistakes: {wrong}")] if wrong else []
    return [heading, table, *mistakes]


def _line(text: str, style: str = "") -> Text:
    return Text(" ".join(visible(text).split()), style=style, overflow="ellipsis", no_wrap=True)
