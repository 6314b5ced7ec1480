"""The command `heedful locate`: where in the network two prompts differ."""

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.input import load_model
from heedful.cli.options import DeviceOption, JsonOption, MemoryOption, ModelOption

CleanArgument = Annotated[
    str, typer.Argument(metavar="CLEAN", help="The prompt after which the model says the target.")
]
CorruptedArgument = Annotated[
    str, typer.Argument(metavar="CORRUPTED", help="The same prompt with another fact, of the same number of tokens.")
]
NextOption = Annotated[
    str | None, typer.Option("--target", help="The next token or class; default: the one preferred after CLEAN.")
]
OtherOption = Annotated[
    str | None, typer.Option("--against", help="What it is compared with; default: what is preferred after CORRUPTED.")
]
PartOption = Annotated[str, typer.Option("--part", help="What is patched: residual, attention or mlp.")]
MeasureOption = Annotated[str, typer.Option("--measure", help="logit, log-probability or probability.")]
GrainOption = Annotated[str, typer.Option("--unit", help="What is patched at once: token or word.")]
MapOption = Annotated[Path | None, typer.Option("--out", help="Write the map: .html, .json, .png or .svg.")]


def locate(
    clean: CleanArgument,
    corrupted: CorruptedArgument,
    model: ModelOption = "reviews",
    target: NextOption = None,
    against: OtherOption = None,
    part: PartOption = "residual",
    measure: MeasureOption = "logit",
    unit: GrainOption = "token",
    device: DeviceOption = "cpu",
    memory: MemoryOption = None,
    out: MapOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find where a model stores what it says: restore a corrupted prompt layer by layer, position by position.

    Example: `heedful locate "The capital of France is" "The capital of Italy is" --model org/name --out map.html`
    """
    import heedful

    location = heedful.locate(
        load_model(model, device),
        clean,
        corrupted,
        target,
        against,
        part=part,
        measure=measure,  # type: ignore[arg-type]
        unit=unit,
        memory=memory,
    )
    if out is not None:
        location.save(out)
        typer.echo(f"Wrote {out}", err=True)
    if as_json:
        typer.echo(json.dumps(location.as_dict()))
    else:
        heedful.show(location)
