"""The command `heedful compare`: one text, many methods."""

from heedful.cli import options
from heedful.cli.input import (
    Columns,
    input_and_settings,
    load_model,
    named_models,
    one_text,
    split_names,
    target_of,
)
from heedful.cli.output import deliver
from heedful.cli.progress import masks_bar


def compare(
    words: options.Words = None,
    methods: options.MethodsOption = None,
    model: options.ModelsOption = None,
    target: options.TargetOption = None,
    against: options.AgainstOption = None,
    dictionary: options.DictionaryOption = None,
    feature: options.FeatureOption = None,
    scale: options.ScaleOption = "logit",
    unit: options.UnitOption = "word",
    second: options.SecondOption = None,
    file: options.FileOption = None,
    text_column: options.TextColumnOption = None,
    id_column: options.IdColumnOption = None,
    row: options.RowOption = None,
    device: options.DeviceOption = "cpu",
    precision: options.PrecisionOption = "float32",
    memory: options.MemoryOption = None,
    seconds: options.SecondsOption = None,
    half: options.HalfOption = False,
    out: options.OutOption = None,
    as_json: options.JsonOption = False,
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
    settings |= {"target": target_of(target, dictionary, feature), "against": against, "scale": scale, "unit": unit}
    settings |= {"memory": memory, "seconds": seconds, "half": half}
    with masks_bar() as callbacks:
        models = {
            name: load_model(one, device, precision) for name, one in named_models(model, settings["target"]).items()
        }
        given = models if len(models) > 1 else next(iter(models.values()))
        comparison = heedful.compare(given, text, names, **callbacks, **settings)
    deliver(comparison, out, as_json)
