"""The command `heedful explain`: one text, one method."""

from typing import Annotated

import typer

from heedful.cli.input import load_model, text_and_settings
from heedful.cli.options import (
    AgainstOption,
    DeviceOption,
    FileOption,
    HalfOption,
    JsonOption,
    MemoryOption,
    ModelOption,
    OutOption,
    PrecisionOption,
    ScaleOption,
    SecondOption,
    SecondsOption,
    TargetOption,
    UnitOption,
    Words,
)
from heedful.cli.output import deliver
from heedful.cli.progress import masks_bar


def explain(
    words: Words = None,
    method: Annotated[str, typer.Option("--method", help="A method that `heedful list` prints.")] = "lime",
    model: ModelOption = "paper",
    target: TargetOption = None,
    against: AgainstOption = None,
    scale: ScaleOption = "logit",
    unit: UnitOption = "word",
    second: SecondOption = None,
    file: FileOption = None,
    device: DeviceOption = "cpu",
    precision: PrecisionOption = "float32",
    memory: MemoryOption = None,
    seconds: SecondsOption = None,
    half: HalfOption = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a text with one method.

    Example: `heedful explain "a fine film, but too long" --method lime --n-samples 1000`

    Every setting of the method is an option. `heedful list lime` prints the settings of lime.
    """
    import heedful
    from heedful.explainers import settings_of

    text, settings = text_and_settings(words or [], file, second)
    settings_of([method], settings)
    settings |= {"target": target, "against": against, "scale": scale, "unit": unit}
    settings |= {"memory": memory, "seconds": seconds, "half": half}
    with masks_bar() as callbacks:
        explanation = heedful.explain(load_model(model, device, precision), text, method, **callbacks, **settings)
    deliver(explanation, out, as_json)
