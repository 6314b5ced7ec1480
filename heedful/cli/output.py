"""Results of a command: printed as formatted text or JSON, and written to a file."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from heedful.evaluation.comparison import Comparison
    from heedful.evaluation.several import SideBySide
    from heedful.explanation import Explanation
    from heedful.explanations import Explanations
    from heedful.features.steering import Steering
    from heedful.generation.attribution import Attribution
    from heedful.generation.generation import Generation
    from heedful.generation.reliance import Reliance


def deliver(
    result: "Explanation | Explanations | Comparison | SideBySide | Generation | Attribution | Reliance | Steering",
    out: Path | None,
    as_json: bool,
) -> None:
    """Writes the result to `out`, if one is given, and prints it; JSON of many texts has a line for each."""
    from heedful.explanations import Explanations
    from heedful.explanations.refusal import Refusal
    from heedful.render import show, write

    if out is not None:
        write(result, out)
    if not as_json:
        show(result)
    elif isinstance(result, Explanations):
        for name, item in zip(result.ids, result, strict=True):
            content = {"reason": item.reason} if isinstance(item, Refusal) else {"explanation": item.as_dict()}
            typer.echo(json.dumps({"id": name, **content}))
    else:
        typer.echo(json.dumps(result.as_dict()))
    if out is not None:
        typer.echo(f"Wrote {out}", err=True)
