"""The command `heedful explain`: one text, or the rows of a table, by one method."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.input import Columns, input_and_settings, load_model, one_text, target_of, usual_model
from heedful.cli.output import deliver
from heedful.cli.progress import masks_bar, texts_bar
from heedful.errors import BadInput

if TYPE_CHECKING:
    from heedful.datasets.texts import Texts
    from heedful.models import Model

ModelOption = Annotated[
    str | None, typer.Option("--model", help=f"{options.MODELS}. Default: paper, or the model of the --dictionary.")
]
LinesOption = Annotated[bool, typer.Option("--lines", help="Explain every line of the file.")]
_OF_ONE_TEXT = (".json", ".png", ".svg", ".pdf")


def explain(
    words: options.Words = None,
    method: Annotated[str, typer.Option("--method", help="A method that `heedful list` prints.")] = "lime",
    model: ModelOption = None,
    target: options.TargetOption = None,
    against: options.AgainstOption = None,
    dictionary: options.DictionaryOption = None,
    feature: options.FeatureOption = None,
    scale: options.ScaleOption = "logit",
    unit: options.UnitOption = "word",
    second: options.SecondOption = None,
    file: options.FileOption = None,
    lines: LinesOption = False,
    text_column: options.TextColumnOption = None,
    label_column: options.LabelColumnOption = None,
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
    """Explain a text, or every row of a table, with one method.

    Example: `heedful explain "a fine film, but too long" --method lime --n-samples 1000`

    Example: `heedful explain reviews.csv --text-column text --method shapley-sampled --out results/`

    With `--dictionary` and `--feature` the target is how active a feature is in the text.

    Every setting of the method is an option. `heedful list lime` prints the settings of lime.
    """
    import heedful
    from heedful.explainers import settings_of

    data, settings = input_and_settings(words or [], file, second, Columns(text_column, label_column, id_column), lines)
    settings_of([method], settings)
    settings |= {"target": target_of(target, dictionary, feature), "against": against, "scale": scale, "unit": unit}
    settings |= {"memory": memory, "seconds": seconds, "half": half}
    loaded = load_model(model or usual_model(settings["target"]), device, precision)
    from heedful.datasets.texts import Texts

    if isinstance(data, Texts) and row is None:
        _explain_table(loaded, data, method, settings, out, as_json)
        return
    with masks_bar() as callbacks:
        explanation = heedful.explain(loaded, one_text(data, row, "explain"), method, **callbacks, **settings)
    deliver(explanation, out, as_json)


def _explain_table(
    model: "Model", texts: "Texts", method: str, settings: dict[str, Any], out: Path | None, as_json: bool
) -> None:
    """Explains every row: shown, written as a page, or kept in a folder that resumes."""
    import heedful

    ending = "" if out is None else out.suffix.lower()
    if ending in _OF_ONE_TEXT:
        raise BadInput(f"Many texts are written as a page (.html) or a folder (no ending); {ending} was given.")
    typer.echo(texts.about, err=True)
    if out is None or ending == ".html":
        with texts_bar(" before a text was explained") as watch:
            explanations = heedful.explain(model, texts, method, progress=watch, **settings)
        deliver(explanations, out, as_json)
        return
    from heedful.explainers import configure
    from heedful.explainers.many_texts import ManyTexts
    from heedful.explainers.resumable import explain_into
    from heedful.models import model_and_target
    from heedful.models.budget import Budget

    target, against, scale, memory, seconds, half = (
        settings.pop(name) for name in ("target", "against", "scale", "memory", "seconds", "half")
    )
    model, target = model_and_target(model, target, against, scale)
    budget = Budget.of(memory, seconds, lambda *_: None, half)
    many = ManyTexts(model, configure(method, settings), texts, target, against, scale, budget)
    with texts_bar("; the same command goes on where it stopped") as watch:
        refused = explain_into(many, out, watch)
    n_explained = len(texts) - sum(map(len, refused.values()))
    typer.echo(f"{n_explained:,} of {len(texts):,} texts were explained by {method}.")
    for reason, names in refused.items():
        typer.echo(f"{len(names):,} not explained ({', '.join(names[:5])}{' …' * (len(names) > 5)}): {reason}")
    typer.echo(f"Wrote {out}; heedful.open reads it in Python.", err=True)
