"""The command `heedful compare`: one text, many methods."""

from typing import Annotated

import typer

from heedful.cli.input import load_model, named_models, split_names, text_and_settings
from heedful.cli.options import (
    AgainstOption,
    DeviceOption,
    FileOption,
    HalfOption,
    JsonOption,
    MemoryOption,
    ModelsOption,
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


def compare(
    words: Words = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help='Method names, separated by commas, or "all"; default: one for each idea.'),
    ] = None,
    model: ModelsOption = None,
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
    """Explain a text with many methods, side by side.

    Example: `heedful compare "a fine film, but too long" --target positive --out report.html`

    Every setting of a method is an option, such as `--n-samples 1000`. It applies to all methods that have it.
    """
    import heedful
    from heedful.explainers import settings_of

    text, settings = text_and_settings(words or [], file, second)
    names = methods if methods == "all" else split_names(methods)
    settings_of(names if isinstance(names, list) else heedful.methods(), settings)
    settings |= {"target": target, "against": against, "scale": scale, "unit": unit}
    settings |= {"memory": memory, "seconds": seconds, "half": half}
    with masks_bar() as callbacks:
        models = {name: load_model(one, device, precision) for name, one in named_models(model).items()}
        given = models if len(models) > 1 else next(iter(models.values()))
        comparison = heedful.compare(given, text, names, **callbacks, **settings)
    deliver(comparison, out, as_json)
