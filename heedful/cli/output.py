"""Results of a command: printed as formatted text or JSON, and written to a file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from heedful.evaluation.comparison import Comparison
    from heedful.evaluation.several import SideBySide
    from heedful.explanation import Explanation


def deliver(result: "Explanation | Comparison | SideBySide", out: Path | None, as_json: bool) -> None:
    """Writes the result to `out`, if one is given, and prints it to the terminal."""
    from heedful.render import show, write

    if out is not None:
        write(result, out)
    if as_json:
        typer.echo(json.dumps(result.as_dict()))
    else:
        show(result)
    if out is not None:
        typer.echo(f"Wrote {out}", err=True)
