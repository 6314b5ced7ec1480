"""The command `heedful probe`: what a model's attention can be used for."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from heedful.cli import options
from heedful.cli.input import Columns, dataset_and_settings, load_model, read_texts, split_names
from heedful.cli.progress import probes_bar

if TYPE_CHECKING:
    from heedful.datasets import Split
    from heedful.document import Unit

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
    part = cast("Split", split)
    import heedful
    from heedful.document import check_unit
    from heedful.evaluation.probe import chosen_probes, training_source, usable_folder
    from heedful.evaluation.sample import draw
    from heedful.render import show
    from heedful.render.probes.probe_files import write_probes

    # Before the model, so that a mistake or missing data are known at once.
    names = [one.name for one in chosen_probes("all" if tests == "all" else split_names(tests), settings)]
    check_unit(unit)
    if out is not None:
        usable_folder(out)
    sample = draw(dataset, n, part, seed)
    texts: Any = read_texts(Path(train), columns) if train is not None and Path(train).suffix else train
    for read in (dataset, texts):
        if read is not None and not isinstance(read, str):
            typer.echo(read.about, err=True)
    source = training_source(dataset, texts)
    loaded = load_model(model, device, precision)
    with probes_bar(names, out is not None) as watch:
        report = heedful.probe(
            loaded,
            sample,
            names,
            n,
            train=source,
            n_train=n_train,
            unit=cast("Unit", unit),
            seed=seed,
            out=out,
            progress=watch,
            **settings,
        )
    written = () if out is None else write_probes(report, out)
    if as_json:
        typer.echo(json.dumps(report.as_dict()))
    else:
        show(report)
    if written:
        typer.echo(f"Wrote {', '.join(written)} in {out}", err=True)
