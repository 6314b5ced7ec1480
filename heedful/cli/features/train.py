"""The command `heedful features train`: a dictionary of features of a layer, from texts."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, final

import typer

from heedful.cli import options
from heedful.cli.features import options as shared
from heedful.cli.progress import rows_bar
from heedful.cli.settings_command import SettingsCommand, list_settings
from heedful.errors import BadInput
from heedful.family import parse_words, split_settings

WordsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="MODEL", help="A bundled model, a folder or file, or one of Hugging Face.")
]
WidthOption = Annotated[int, typer.Option("--width", help="The number of features.")]
KindOption = Annotated[str, typer.Option("--kind", help="matryoshka, batchtopk, topk, jumprelu or relu.")]
ActivationsOption = Annotated[
    Path | None,
    typer.Option("--activations", help="A folder for the activations, written once; default: memory, or every pass."),
]
FolderOption = Annotated[
    Path, typer.Option("--out", help="The folder of the dictionary. The same command with the same folder resumes it.")
]


@final
class TrainFeaturesCommand(SettingsCommand):
    """The command with the settings of the training and of every kind of autoencoder."""

    def settings_help(self) -> str:
        """Every setting with its default, as Markdown."""
        from heedful.features.autoencoder import kinds
        from heedful.features.training import TrainingPlan

        usual = (
            "If they are not given, k is 32, a quarter of the dimensions or the width, whichever is least, and n-rows "
            "is ten passes over the texts, 500,000 to 4,000,000 rows."
        )
        return f"{list_settings({'the training': TrainingPlan, **kinds()})}\n\n{usual}"


def train(
    texts: shared.TextsOption,
    words: WordsArgument = None,
    layer: shared.LayerOption = None,
    width: WidthOption = 1024,
    kind: KindOption = "matryoshka",
    part: shared.PartOption = "residual",
    n_held_out: shared.HeldOutOption = None,
    activations: ActivationsOption = None,
    out: FolderOption = Path("runs/features"),
    text_column: options.TextColumnOption = None,
    label_column: options.LabelColumnOption = None,
    seed: shared.SeedOption = 0,
    device: options.DeviceOption = "cpu",
) -> None:
    """Train a dictionary of features on a layer of a model. Stop it at any time; the same command resumes it.

    Some texts are held out, and the dictionary is measured on them; its card has the metrics.

    Example: `heedful features train reviews --texts sst --layer 3 --width 512 --k 16 --out runs/features`
    """
    import heedful

    model, settings = _model_and_settings(words)
    settings |= {"part": part, "n_held_out": n_held_out, "text": text_column, "label": shared.labels_from(label_column)}
    settings |= {"seed": seed, "device": device, "activations": activations, "out": out}
    settings["command"] = shlex.join(["heedful", *sys.argv[1:]])
    with rows_bar("chunk") as (watch, announce):
        heedful.features.train(model, layer, texts, width, kind, progress=watch, announce=announce, **settings)
        announce(f"Wrote {out}")


def _model_and_settings(words: list[str] | None) -> tuple[str, dict[str, Any]]:
    """The model that the command names first, and the settings that follow."""
    from heedful.features.autoencoder import kinds
    from heedful.features.training import TrainingPlan

    names, settings = parse_words(words or [])
    if len(names) != 1:
        given = f"{len(names)} were given: {', '.join(map(repr, names))}" if names else "none was given"
        raise BadInput(f"Name one model first, such as reviews; {given}.")
    split_settings(settings, [TrainingPlan, *kinds().values()])
    return names[0], settings
