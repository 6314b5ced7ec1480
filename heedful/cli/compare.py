"""The command `heedful compare`: one text, many methods."""

from typing import Annotated

import typer

from heedful.cli.input import Columns, input_and_settings, load_model, named_models, one_text, split_names
from heedful.cli.options import (
    AgainstOption,
    DeviceOption,
    FileOption,
    HalfOption,
    IdColumnOption,
    JsonOption,
    MemoryOption,
    ModelsOption,
    OutOption,
    PrecisionOption,
    RowOption,
    ScaleOption,
    SecondOption,
    SecondsOption,
    TargetOption,
    TextColumnOption,
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
    text_column: TextColumnOption = None,
    id_column: IdColumnOption = None,
    row: RowOption = None,
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

    data, settings = input_and_settings(words or [], file, second, Columns(text_column, None, id_column))
    text = one_text(data, row, "compare")
    names = methods if methods == "all" else split_names(methods)
    settings_of(names if isinstance(names, list) else heedful.methods(), settings)
    settings |= {"target": target, "against": against, "scale": scale, "unit": unit}
    settings |= {"memory": memory, "seconds": seconds, "half": half}
    with masks_bar() as callbacks:
        models = {name: load_model(one, device, precision) for name, one in named_models(model).items()}
        given = models if len(models) > 1 else next(iter(models.values()))
        comparison = heedful.compare(given, text, names, **callbacks, **settings)
    deliver(comparison, out, as_json)
