"""The command line: it parses, calls and prints."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from heedful.cli.list import list_catalogue
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
    names_of,
    read_file,
    text_and_settings,
)
from heedful.cli.progress import epochs_bar, masks_bar
from heedful.cli.reproduce import reproduce
from heedful.cli.trust import trust
from heedful.errors import BadInput, HeedfulError, unknown_name
from heedful.family import build, from_words, shares

if TYPE_CHECKING:
    from heedful.evaluation.comparison import Comparison
    from heedful.explanation import Explanation

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Explanations of attention-based models that say how far they can be trusted.",
)
# Typer carries a command-line parser of its own or uses click's; either way this is its error for a wrong command.
_UsageError: Any = typer.BadParameter.__mro__[1]
_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def _print_version(wanted: bool) -> bool:
    import heedful

    if wanted:
        typer.echo(heedful.__version__)
        raise typer.Exit
    return wanted


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Explanations of attention-based models that say how far they can be trusted."""


@app.command(context_settings=_SETTINGS)
def explain(
    words: Words = None,
    method: Annotated[str, typer.Option("--method", help="A name that `heedful list` prints.")] = "lime",
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
    """Explain a text by one method.

    Every setting of the method is an option: `heedful explain "a fine film" --method lime --n-samples 1000`.
    """
    import heedful
    from heedful.explainers import settings_of

    text, settings = text_and_settings(words or [], file, second)
    settings_of([method], settings)
    settings |= {"target": target, "against": against, "scale": scale, "unit": unit}
    settings |= {"memory": memory, "seconds": seconds, "half": half}
    with masks_bar() as told:
        found = heedful.explain(heedful.load(model, device, precision), text, method, **told, **settings)
    _deliver(found, out, as_json)


@app.command(context_settings=_SETTINGS)
def compare(
    words: Words = None,
    methods: Annotated[str | None, typer.Option("--methods", help="Names with commas between; default: all.")] = None,
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
    """Explain a text by every method, side by side.

    Example: `heedful compare "a fine film, but too long" --target positive --out report.html`
    """
    import heedful
    from heedful.explainers import settings_of

    text, settings = text_and_settings(words or [], file, second)
    names = names_of(methods)
    settings_of(names or heedful.methods(), settings)
    settings |= {"target": target, "against": against, "scale": scale, "unit": unit}
    settings |= {"memory": memory, "seconds": seconds, "half": half}
    with masks_bar() as told:
        found = heedful.compare(heedful.load(model, device, precision), text, names, **told, **settings)
    _deliver(found, out, as_json)


@app.command()
def heads(
    words: Words = None,
    model: ModelOption = "paper",
    corpus: Annotated[
        Path | None, typer.Option("--corpus", help="Score the heads over this file, a text a line.")
    ] = None,
    layer: Annotated[int, typer.Option("--layer", help="For an .svg: the layer, counted from 0; -1 is the last.")] = -1,
    head: Annotated[int | None, typer.Option("--head", help="For an .svg: the head; default: their mean.")] = None,
    second: SecondOption = None,
    file: FileOption = None,
    device: DeviceOption = "cpu",
    out: Annotated[
        Path | None, typer.Option("--out", help="Draw the text's maps: a page .html, or one head's lines .svg.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say which heads look where: broadly, at the next or previous token, at separators, at punctuation.

    Example: `heedful heads "a fine film , but too long" --corpus reviews.txt --out heads.html`
    """
    import heedful
    from heedful.render.heads import print_heads, write_heads

    text, settings = text_and_settings(words or [], file, second)
    if settings:
        raise unknown_name("option", next(iter(settings)), ("corpus", "layer", "head", "out", "model"))
    loaded = heedful.load(model, device)
    texts: list[Any] = [text]
    if corpus is not None:
        texts = [line for line in read_file(corpus).splitlines() if line.strip()]
    found = heedful.heads(loaded, texts)
    if out is not None:
        document = loaded.encode(text)
        write_heads(document, loaded.maps(document), found, out, layer, head)
        typer.echo(f"Wrote {out}", err=True)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
    else:
        print_heads(found, Console())


app.command(context_settings=_SETTINGS)(trust)
app.command()(reproduce)
app.command(name="list")(list_catalogue)


@app.command(context_settings=_SETTINGS)
def train(
    words: Annotated[list[str] | None, typer.Argument(metavar="DATASET", help="A data set of `heedful list`.")] = None,
    out: Annotated[Path, typer.Option("--out", help="The folder of this run; the same folder resumes it.")] = Path(
        "runs/single-layer"
    ),
) -> None:
    """Train the paper's model; stopped at any moment, the same command goes on from the last whole epoch.

    Settings are options: `heedful train imdb --out runs/paper --min-count 2 --seed 0 --positional authors`. They are,
    with their defaults: --learning-rate 0.0001 --batch-size 16 --n-epochs 10 --min-count 1 --seed 0 --device cpu;
    --n-heads 6 --T-max 256 --d-e 128 --d-att 64 --d-out 64 --n-classes 2 --positional equation-3 --bias False; for imdb
    --split-seed 0 --n-validation 5000 --duplicates keep.
    """
    import heedful
    from heedful.models.network import Config
    from heedful.models.training import Recipe, publish, train

    names, settings = from_words(words or [])
    corpora = heedful.datasets()  # type: ignore[operator]
    dataset = " ".join(names) or "imdb"
    if dataset not in corpora:
        raise unknown_name("data set", dataset, corpora)
    for_data, for_model, for_recipe = shares(settings, (corpora[dataset], Config, Recipe))
    data = build(corpora[dataset], dataset, for_data)
    config, recipe = build(Config, "the model", for_model), build(Recipe, "the recipe", for_recipe)
    console = Console(stderr=True)
    with epochs_bar(recipe.n_epochs) as (watch, started):
        try:
            model, epochs = train(data, config, recipe, out, watch)
        except KeyboardInterrupt:
            console.print("Stopped. The same command goes on from the last whole epoch.")
            raise typer.Exit(130) from None
    if not started:
        console.print("This run is finished; nothing was left to train.")
    elif started[0] > 0:
        console.print(f"Went on after epoch {started[0]}.")
    for epoch in epochs:
        console.print(
            f"epoch {epoch.number + 1}: loss {epoch.loss:.4f}, training accuracy {epoch.train_accuracy:.2%}, "
            f"validation accuracy {epoch.validation_accuracy:.2%}"
        )
    card = publish(model, data, epochs, shlex.join(["heedful", "train", *sys.argv[2:]]), out)
    console.print(f"test accuracy {card.test_accuracy:.2%}; model and card are in {out}")


def _deliver(result: "Explanation | Comparison", out: Path | None, as_json: bool) -> None:
    from heedful.render import show, write

    if out is not None:
        try:
            write(result, out)
        except OSError as error:
            raise BadInput(f"{out} cannot be written: {error.strerror}.") from None
    if as_json:
        typer.echo(json.dumps(result.as_dict()))
    else:
        show(result)
    if out is not None:
        typer.echo(f"Wrote {out}", err=True)


def main() -> None:
    """Runs the command line; a mistake the user can mend is one sentence on standard error and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except HeedfulError as error:
        typer.echo(f"heedful: {error}", err=True)
        sys.exit(2)
    except _UsageError as error:
        # Without a command the help was printed, and there is nothing to add.
        if error.format_message():
            typer.echo(f"heedful: {error.format_message()} See heedful --help.", err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f"heedful: {error.strerror or error}.", err=True)
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("heedful: stopped.", err=True)
        sys.exit(130)
    sys.exit(code)
