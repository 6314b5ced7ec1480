"""Generations in the terminal: the text, and a row for every token with what else could have been written."""

from math import exp

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heedful.generation.generation import Generation
from heedful.render.decoding_figures import token_name, tree_legend
from heedful.render.text_strip import visible

_ROWS = 40
_OTHERS = 3


def print_generation(generation: Generation, console: Console) -> None:
    """Prints the prompt and the text, then the steps: the token, its probability, the kept set, other tokens."""
    console.print(Text.assemble((visible(generation.document.text), "dim"), (visible(generation.text), "bold")))
    for note in generation.notes:
        console.print(Text(f"Note: {visible(note)}", style="yellow"))
    table = Table(box=box.SIMPLE, pad_edge=False)
    for column, side in (("#", "right"), ("token", "left"), ("p", "right"), ("kept", "right"), ("mass", "right")):
        table.add_column(column, justify=side, no_wrap=True, min_width=4)  # type: ignore[arg-type]
    table.add_column("other tokens", overflow="ellipsis", no_wrap=True)
    for number, step in enumerate(generation.steps[:_ROWS], start=1):
        others = [token for token in step.alternatives if token.id != step.id][:_OTHERS]
        table.add_row(
            str(number),
            Text(token_name(step.token, 16)),
            f"{exp(step.log_probability):.3f}",
            f"{step.n_kept:,}",
            f"{step.mass:.2f}",
            Text(", ".join(f"{token_name(token.token, 16)} {token.probability:.2f}" for token in others)),
        )
    console.print(table)
    if len(generation.steps) > _ROWS:
        console.print(Text(f"… and {len(generation.steps) - _ROWS:,} more tokens; the JSON has all.", style="dim"))
    if generation.tree is not None:
        console.print(Text(tree_legend(generation).partition(" Green:")[0], style="dim"))
    total = f"{generation.log_probabilities.sum():.2f}"
    console.print(Text(f"Ended by {generation.ended}; log-probability {total}. ␣ is a space.", style="dim"))
