"""The command `heedful train`: the paper's classifier, a transformer, a classic model or GPT-2, on a data set."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import typer
from rich.console import Console

from heedful.cli.progress import epochs_bar
from heedful.cli.settings_command import SettingsCommand, list_settings
from heedful.errors import BadInput, unknown_name
from heedful.family import build, parse_words, setting_types, split_settings

if TYPE_CHECKING:
    from heedful.datasets import Dataset

_KINDS = ("single-layer", "transformer", "classic", "gpt2")


@final
class TrainCommand(SettingsCommand):
    """The command with the settings of both trainings, of the models and of the data sets."""

    def settings_help(self) -> str:
        """Every setting with its default, as Markdown."""
        return settings_help()


def train(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATASET", help="A data set that `heedful list` prints, or a file of texts or lines; default: imdb."
        ),
    ] = None,
    kind: Annotated[
        Literal["single-layer", "transformer", "classic", "gpt2"],
        typer.Option(
            "--kind",
            help="The paper's classifier; a transformer whose parts are options; a BiLSTM, average or convolution with "
            "attention; or GPT-2, which learns to write the texts.",
        ),
    ] = "single-layer",
    out: Annotated[
        Path, typer.Option("--out", help="The folder of this run. The same command with the same folder resumes it.")
    ] = Path("runs/single-layer"),
) -> None:
    """Train the paper's classifier, a transformer, a classic model or GPT-2. The same command resumes a stopped run.

    GPT-2 learns its vocabulary too, by byte-pair encoding; `heedful generate --model FOLDER` writes with it.

    Example: `heedful train imdb --out runs/paper --min-count 2 --seed 0 --positional authors`

    Example: `heedful train esnli --kind classic --encoder bilstm --attention tanh --out runs/esnli --device cuda`

    Example: `heedful train reviews.csv --text-column comment --label-column liked --kind transformer --depth 2`

    Example: `heedful train eraser-movies --kind classic --encoder average --rationale 0.1 --out runs/marked`

    Example: `heedful train sst --kind gpt2 --out runs/gpt2 --n-tokens 2000 --d-e 128 --depth 4 --n-epochs 5`
    """
    data, config, recipe = _parse_settings(words or [], kind)
    model, epochs = _train_with_bar(kind, data, config, recipe, out)
    console = Console(stderr=True)
    for epoch in epochs:
        console.print(f"epoch {epoch.number + 1}: {epoch.summary}")
    card = _parts_of(kind)[3](model, data, epochs, shlex.join(["heedful", "train", *sys.argv[2:]]), out)
    console.print(f"{card.summary}; model and card are in {out}")


def settings_help() -> str:
    """Every setting of training, of the models and of the data sets, with its default, as Markdown."""
    import heedful
    from heedful.datasets.file_texts import FileTexts

    corpora: Mapping[str, Any] = heedful.datasets()
    models = {
        f"{name} {kind}": member
        for kind in _KINDS
        for name, member in zip(("training", "the model"), reversed(_parts_of(kind)[:2]), strict=True)
    }
    return list_settings({**models, **corpora, "a file": FileTexts})


def _parts_of(kind: str) -> tuple[type[Any], type[Any], Any, Any]:
    """The settings of a model and of its training, the function that trains it, and the one that writes it."""
    from heedful.models.classic.network import ClassicConfig
    from heedful.models.classic.training import ClassicRecipe, publish_classic, train_classic
    from heedful.models.language.card import publish_gpt2
    from heedful.models.language.gpt2 import Gpt2Config
    from heedful.models.language.training import Gpt2Recipe, train_gpt2
    from heedful.models.network import Config
    from heedful.models.switched.config import TransformerConfig
    from heedful.models.switched.training import TransformerRecipe, publish_transformer, train_transformer
    from heedful.models.training import Recipe, publish, train

    kinds: dict[str, tuple[type[Any], type[Any], Any, Any]] = {
        "single-layer": (Config, Recipe, train, publish),
        "transformer": (TransformerConfig, TransformerRecipe, train_transformer, publish_transformer),
        "classic": (ClassicConfig, ClassicRecipe, train_classic, publish_classic),
        "gpt2": (Gpt2Config, Gpt2Recipe, train_gpt2, publish_gpt2),
    }
    return kinds[kind]


def _parse_settings(words: list[str], kind: str) -> "tuple[Dataset, Any, Any]":
    import heedful
    from heedful.datasets.file_texts import FileTexts
    from heedful.datasets.texts import text_file

    names, settings = parse_words(words)
    corpora: dict[str, Any] = dict(heedful.datasets())
    dataset = " ".join(names) or "imdb"
    if dataset not in corpora and text_file(dataset) is not None:
        corpora, settings = {dataset: FileTexts}, {**settings, "file": dataset}
    if dataset not in corpora:
        raise unknown_name("data set", dataset, corpora)
    model, recipe, *_ = _parts_of(kind)
    _check_kind(settings, kind, corpora[dataset])
    for_data, for_model, for_recipe = split_settings(settings, (corpora[dataset], model, recipe))
    data = build(corpora[dataset], dataset, for_data)
    return data, build(model, "the model", for_model), build(recipe, "the recipe", for_recipe)


def _check_kind(settings: Mapping[str, Any], kind: str, data: type[Any]) -> None:
    """Refuses a setting that only other kinds of model have."""
    of_kind = {name: {*setting_types(data)}.union(*map(setting_types, _parts_of(name)[:2])) for name in _KINDS}
    for setting in settings:
        others = [name for name in _KINDS if setting in of_kind[name]]
        if others and kind not in others:
            option = setting.replace("_", "-")
            kinds = " and ".join(part for part in (", ".join(others[:-1]), others[-1]) if part)
            raise BadInput(f"--{option} is a setting of --kind {kinds}; this run is of --kind {kind}.")


def _train_with_bar(kind: str, data: "Dataset", config: Any, recipe: Any, out: Path) -> tuple[Any, "Sequence[Any]"]:
    """Trains with a progress bar, and prints whether the run was resumed, finished before, or stopped."""
    fit = _parts_of(kind)[2]
    console = Console(stderr=True)
    with epochs_bar(recipe.n_epochs) as (watch, started):
        try:
            trained = fit(data, config, recipe, out, watch)
        except KeyboardInterrupt:
            console.print("Stopped. The same command resumes at the last epoch.")
            raise typer.Exit(130) from None
    if not started:
        console.print("This run is already finished; there is nothing to train.")
    elif started[0] > 0:
        console.print(f"Resumed after epoch {started[0]}.")
    return trained
