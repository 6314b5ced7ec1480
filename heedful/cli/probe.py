"""The command `heedful probe`: what a model's attention can be used for."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.input import Columns, dataset_and_settings, load_model, read_texts, split_names
from heedful.cli.progress import probes_bar

if TYPE_CHECKING:
    from heedful.evaluation.probe_report import ProbeReport

TestsOption = Annotated[
    str | None,
    typer.Option("--tests", help="Names of probes that `heedful list` prints, separated by commas; default: all."),
]
TrainOption = Annotated[
    str | None,
    typer.Option(
        "--train",
        help="Labelled texts for the probes that train models: a data set, or a file; default: the training split.",
    ),
]
NTrainOption = Annotated[int, typer.Option("--n-train", help="The number of texts to train on, drawn at random.")]
ProbeUnitOption = Annotated[str, typer.Option("--unit", help="token, word, type, segment or sentence.")]


def probe(
    words: options.DatasetArgument = None,
    model: options.ModelOption = "paper",
    n: options.NOption = None,
    tests: TestsOption = None,
    train: TrainOption = None,
    n_train: NTrainOption = 1_000,
    split: options.SplitOption = "test",
    file: options.TextsOption = None,
    text_column: options.TextColumnOption = None,
    label_column: options.LabelColumnOption = None,
    unit: ProbeUnitOption = "word",
    seed: options.SeedOption = 0,
    device: options.DeviceOption = "cpu",
    precision: options.PrecisionOption = "float32",
    out: options.FolderOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Test what a model's attention can be used for, by every published test of attention as explanation.

    Example: `heedful probe imdb --model paper -n 200 --out runs/probe`

    Every setting of a probe is an option, such as `--n-permutations 50`. Some probes train models: they need a model
    of `heedful train` and texts with labels. The folder gets report.html and report.json; after Ctrl-C the same command
    resumes.
    """
    columns = Columns(text_column, label_column)
    dataset, settings = dataset_and_settings(words or [], file, columns)
    # Before the model is loaded, so that a mistake or missing data are known at once.
    names = _chosen(tests, settings, unit, out)
    sample, source = _texts(dataset, train, n, split, seed, columns)
    loaded = load_model(model, device, precision)
    import heedful

    with probes_bar(names, out is not None) as watch:
        given: dict[str, Any] = {"train": source, "n_train": n_train, "unit": unit, "seed": seed, "out": out}
        report = heedful.probe(loaded, sample, names, n, progress=watch, **given, **settings)
    _deliver(report, out, as_json)


def _chosen(tests: str | None, settings: dict[str, Any], unit: str, out: Path | None) -> list[str]:
    """The names of the probes; a setting, unit or folder that cannot be used is an error."""
    from heedful.document import check_unit
    from heedful.evaluation.probe import chosen_probes, usable_folder

    names = [one.name for one in chosen_probes("all" if tests == "all" else split_names(tests), settings)]
    check_unit(unit)
    if out is not None:
        usable_folder(out)
    return names


def _texts(dataset: Any, train: str | None, n: int | None, split: str, seed: int, columns: Columns) -> tuple[Any, Any]:
    """The texts to probe, and those to train on; a line says what was read from a file."""
    from heedful.evaluation.probe import training_source
    from heedful.evaluation.sample import draw

    sample = draw(dataset, n, split, seed)
    texts: Any = read_texts(Path(train), columns) if train is not None and Path(train).suffix else train
    for read in (dataset, texts):
        if read is not None and not isinstance(read, str):
            typer.echo(read.about, err=True)
    return sample, training_source(dataset, texts)


def _deliver(report: "ProbeReport", out: Path | None, as_json: bool) -> None:
    """Writes the report to its folder, if there is one, and prints it."""
    from heedful.render import show
    from heedful.render.probes.probe_files import write_probes

    written = () if out is None else write_probes(report, out)
    if as_json:
        typer.echo(json.dumps(report.as_dict()))
    else:
        show(report)
    if written:
        typer.echo(f"Wrote {', '.join(written)} in {out}", err=True)
