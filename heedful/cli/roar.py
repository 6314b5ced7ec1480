"""The command `heedful roar`: remove and retrain, with the models of `heedful train`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heedful.cli import options
from heedful.cli.input import Columns, dataset_and_settings, load_model, read_texts, split_names
from heedful.cli.progress import resumable_line
from heedful.errors import BadInput
from heedful.family import build, check_count, setting_types

if TYPE_CHECKING:
    from heedful.evaluation.roar_curves import RoarCurves

TrainedModelOption = Annotated[
    str, typer.Option("--model", help='"paper", "reviews", or a folder or file that `heedful train` wrote.')
]
SharesOption = Annotated[
    str | None,
    typer.Option("--shares", help="Shares of replaced words from 0 to 1, separated by commas; default: 0, 0.1, …, 1."),
]
ImputationOption = Annotated[
    str | None,
    typer.Option(
        "--imputation", help="What replaces a word: unknown, delete, replace:WORD or, in the paper's model, mean."
    ),
]


RankingsOption = Annotated[
    str | None,
    typer.Option(
        "--methods",
        help="Method names, separated by commas; default: those of attention-mean, gradient-x-input, lime-exact and "
        "leave-one-out that the model allows.",
    ),
]
ModeOption = Annotated[
    Literal["remove", "keep", "both"],
    typer.Option("--mode", help="Replace the strongest words (remove), the weakest (keep), or each in turn."),
]
SeedsOption = Annotated[int, typer.Option("--seeds", help="How many seeds to train from; 1 gives no interval.")]
MostOption = Annotated[int | None, typer.Option("-n", "--n", help="At most this many texts a split; default: all.")]
TestOption = Annotated[
    Path | None, typer.Option("--test", help="A file of texts to test on; default: the test split, or a fifth.")
]
AtOnceOption = Annotated[
    int, typer.Option("--at-once", help="Models of the paper's kind that are trained together; on a GPU dozens.")
]
WorkersOption = Annotated[int, typer.Option("--workers", help="Processes that explain.")]


def roar(
    words: options.DatasetArgument = None,
    model: TrainedModelOption = "paper",
    methods: RankingsOption = None,
    shares: SharesOption = None,
    mode: ModeOption = "remove",
    imputation: ImputationOption = None,
    seeds: SeedsOption = 3,
    n: MostOption = None,
    test: TestOption = None,
    at_once: AtOnceOption = 1,
    workers: WorkersOption = 1,
    text_column: options.TextColumnOption = None,
    label_column: options.LabelColumnOption = None,
    device: options.DeviceOption = "cpu",
    out: options.FolderOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Train models without the words that each method names: does accuracy fall?

    Example: `heedful roar imdb -n 1000 --methods lime-exact --shares 0,0.5,1 --n-epochs 2 --seeds 2 --out runs/roar`

    The model is explained, and models of its kind are trained from new weights. Every setting of the training, such as
    `--n-epochs 3`, or of a method is an option. The folder gets report.html, roar.svg and results.json; after Ctrl-C
    the same command resumes. With a training function of your own: `heedful.roar` in Python.
    """
    columns = Columns(text_column, label_column)
    dataset, settings = dataset_and_settings(words or [], None, columns)
    given: dict[str, Any] = {"mode": mode, "imputation": imputation, "seeds": seeds, "n": n, "workers": workers}
    given |= {"out": out, "test": None if test is None else read_texts(test, columns), **_shares(shares)}
    retrainer, settings = _retrainer(model, device, at_once, settings)
    import heedful

    with resumable_line("steps", out is not None) as watch:
        curves = heedful.roar(retrainer, dataset, split_names(methods), progress=watch, **given, **settings)
    _deliver(curves, out, as_json)


def _shares(given: str | None) -> dict[str, list[float]]:
    try:
        return {} if given is None else {"shares": [float(share) for share in given.split(",")]}
    except ValueError:
        raise BadInput(f"--shares are numbers separated by commas, such as 0,0.5,1; {given!r} was given.") from None


def _retrainer(model: str, device: str, at_once: int, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """How to train models of this kind, and the settings that are not of the training."""
    from heedful.evaluation.retrainers import SingleLayerRetrainer, retrainer_of
    from heedful.models.fitting.fit import FitRecipe
    from heedful.models.single_layer import SingleLayer
    from heedful.models.training import Recipe

    check_count("--at-once", at_once)
    loaded = load_model(model, "cpu")
    kind = Recipe if isinstance(loaded, SingleLayer) else FitRecipe
    unused = {"seed", "device", "min_count", "entropy", "rationale"}
    own = {name: settings[name] for name in settings if name in setting_types(kind).keys() - unused}
    rest = {name: value for name, value in settings.items() if name not in own}
    if isinstance(loaded, SingleLayer):
        return SingleLayerRetrainer(loaded, build(Recipe, "the training", {**own, "device": device}), at_once), rest
    if at_once != 1:
        raise BadInput("Only models of the paper's kind are trained together; leave --at-once out.")
    return retrainer_of(load_model(model, device), build(FitRecipe, "the training", own)), rest


def _deliver(curves: "RoarCurves", out: Path | None, as_json: bool) -> None:
    """Writes the page and the picture to the folder, if there is one, and prints the tables."""
    from heedful.render import show

    if as_json:
        typer.echo(json.dumps(curves.as_dict()))
    else:
        show(curves)
    if out is not None:
        for name in ("report.html", "roar.svg"):
            curves.save(out / name)
        typer.echo(f"Wrote report.html, roar.svg, results.json in {out}", err=True)
