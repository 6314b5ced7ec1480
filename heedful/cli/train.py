"""The command `heedful train`: the paper's classifier, trained on a data set of the catalogue."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer
from rich.console import Console
from typer.core import TyperCommand

from heedful.cli.progress import epochs_bar
from heedful.errors import unknown_name
from heedful.family import build, parse_words, split_settings

if TYPE_CHECKING:
    from heedful.datasets import Dataset
    from heedful.models.network import Config
    from heedful.models.training import Epoch, Recipe


@final
class TrainCommand(TyperCommand):
    """A command whose help also lists the settings. They are read from the dataclasses only when help is requested."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help, settings included."""
        self.help = f"{self.help}\n\n{settings_help()}"
        TyperCommand.format_help(self, ctx, formatter)


def train(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATASET", help="A data set that `heedful list` prints; default: imdb."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="The folder of this run. The same command with the same folder resumes it.")
    ] = Path("runs/single-layer"),
) -> None:
    """Train the paper's single-layer classifier. Stop it at any time; the same command resumes at the last epoch.

    Example: `heedful train imdb --out runs/paper --min-count 2 --seed 0 --positional authors`
    """
    from heedful.models.training import publish, share

    data, config, recipe = _parse_settings(words or [])
    model, epochs = _train_with_bar(data, config, recipe, out)
    console = Console(stderr=True)
    for epoch in epochs:
        console.print(
            f"epoch {epoch.number + 1}: loss {epoch.loss:.4f}, training accuracy {epoch.train_accuracy:.2%}, "
            f"validation accuracy {epoch.validation_accuracy:.2%}"
        )
    card = publish(model, data, epochs, shlex.join(["heedful", "train", *sys.argv[2:]]), out)
    console.print(f"test accuracy {share(card.test_accuracy)}; model and card are in {out}")


def settings_help() -> str:
    """Every setting of training, of the model and of the data sets, with its default, as Markdown."""
    import heedful
    from heedful.models.network import Config
    from heedful.models.training import Recipe

    corpora: Mapping[str, Any] = heedful.datasets()
    groups = {"training": Recipe, "the model": Config, **corpora}
    lines = [f"- {title}: {_options_of(member)}" for title, member in groups.items() if fields(member)]
    return "\n".join(["Settings are options too. With their defaults:\n", *lines])


def _options_of(member: Any) -> str:
    return " ".join(f"`--{field.name.replace('_', '-')} {field.default}`" for field in fields(member))


def _parse_settings(words: list[str]) -> "tuple[Dataset, Config, Recipe]":
    import heedful
    from heedful.models.network import Config
    from heedful.models.training import Recipe

    names, settings = parse_words(words)
    corpora: Mapping[str, Any] = heedful.datasets()
    dataset = " ".join(names) or "imdb"
    if dataset not in corpora:
        raise unknown_name("data set", dataset, corpora)
    for_data, for_model, for_recipe = split_settings(settings, (corpora[dataset], Config, Recipe))
    data = build(corpora[dataset], dataset, for_data)
    return data, build(Config, "the model", for_model), build(Recipe, "the recipe", for_recipe)


def _train_with_bar(data: "Dataset", config: "Config", recipe: "Recipe", out: Path) -> tuple[Any, "Sequence[Epoch]"]:
    """Trains with a progress bar, and prints whether the run was resumed, finished before, or stopped."""
    from heedful.models.training import train

    console = Console(stderr=True)
    with epochs_bar(recipe.n_epochs) as (watch, started):
        try:
            trained = train(data, config, recipe, out, watch)
        except KeyboardInterrupt:
            console.print("Stopped. The same command resumes at the last epoch.")
            raise typer.Exit(130) from None
    if not started:
        console.print("This run is already finished; there is nothing to train.")
    elif started[0] > 0:
        console.print(f"Resumed after epoch {started[0]}.")
    return trained
