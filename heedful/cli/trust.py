"""The command `heedful trust`: which explanation method to believe, for one model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from heedful.cli import options
from heedful.cli.input import (
    Columns,
    dataset_and_settings,
    load_model,
    named_models,
    split_names,
    split_words,
    target_of,
)
from heedful.cli.progress import texts_bar
from heedful.errors import BadInput, HeedfulError
from heedful.family import split_settings

if TYPE_CHECKING:
    from heedful.datasets import Split
    from heedful.document import Unit
    from heedful.evaluation.report import Report
    from heedful.explanation import Explanation
    from heedful.models import Model
    from heedful.target import Scale

MetricsOption = Annotated[
    str | None,
    typer.Option("--metrics", help='Metric names, separated by commas, or "all"; default: those of the verdicts.'),
]
GoldOption = Annotated[
    str | None,
    typer.Option("--gold", help="Words that the model is known to use, separated by commas, or @FILE."),
]
WriteOption = Annotated[
    int | None,
    typer.Option("--write", help="Explain what a language model writes after each text: at most so many tokens."),
]
DeafOption = Annotated[bool, typer.Option("--deaf", help="Make the model ignore all words except those of --gold.")]
OthersOption = Annotated[
    Path | None,
    typer.Option("--others", help='Scores from other tools, one line {"text", "name", "scores"} per explanation.'),
]


def trust(
    words: options.DatasetArgument = None,
    model: options.ModelsOption = None,
    n: options.NOption = None,
    methods: options.MethodsOption = None,
    metrics: MetricsOption = None,
    split: options.SplitOption = "test",
    file: options.TextsOption = None,
    text_column: options.TextColumnOption = None,
    label_column: options.LabelColumnOption = None,
    gold: GoldOption = None,
    deaf: DeafOption = False,
    others: OthersOption = None,
    write: WriteOption = None,
    target: options.TargetOption = None,
    against: options.AgainstOption = None,
    dictionary: options.DictionaryOption = None,
    feature: options.FeatureOption = None,
    scale: options.ScaleOption = "logit",
    unit: options.UnitOption = "word",
    seed: options.SeedOption = 0,
    device: options.DeviceOption = "cpu",
    precision: options.PrecisionOption = "float32",
    memory: options.MemoryOption = None,
    half: options.HalfOption = False,
    out: options.FolderOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Measure which method to believe, on a sample of texts and against random scores.

    Example: `heedful trust imdb -n 200 --methods lime,leave-one-out,attention-mean --out runs/trust`

    Every setting of a method or metric is an option, such as `--n-samples 500` or `--absence delete`. Ctrl-C stops and
    reports on the texts measured so far. The folder gets report.html, report.json and two .parquet files of numbers.
    """
    dataset, settings = dataset_and_settings(words or [], file, Columns(text_column, label_column))
    for name in ("progress", "twin"):
        if name in settings:
            raise BadInput(f"--{name} is an argument of heedful.trust in Python; the command has no such option.")
    part, chosen, measures = cast("Split", split), _names(methods, "method"), _names(metrics, "metric")
    asked: dict[str, Any] = {
        "target": target_of(target, dictionary, feature),
        "against": against,
        "scale": scale,
        "unit": unit,
    }
    import heedful
    from heedful.evaluation.sample import draw

    split_settings(settings, [*heedful.methods().values(), *heedful.metrics().values()])
    # Before the model, so that missing data are known at once.
    sample = draw(dataset, n, part, seed)
    if not isinstance(dataset, str):
        typer.echo(dataset.about, err=True)
    heard_words = split_words(gold or "") if deaf else None
    named = named_models(model, asked["target"]).items()
    models = {name: _load(one, device, precision, asked, heard_words, write) for name, one in named}
    if others is not None and len(models) > 1:
        raise BadInput("--others has explanations of one model; give one --model.")
    loaded = next(iter(models.values()))
    from heedful.evaluation.several import folder_name
    from heedful.evaluation.trust import TrustRequest, trust_report
    from heedful.models import TargetOfModel
    from heedful.models.question import Wanted

    if isinstance(asked["target"], TargetOfModel):
        asked["target"] = loaded.classes[0]
    with texts_bar() as watch:
        request = TrustRequest(
            model=loaded,
            dataset=sample,
            methods=chosen,
            metrics=measures,
            n=n,
            split=part,
            wanted=Wanted(asked["target"], against, cast("Scale", scale)),
            unit=cast("Unit", unit),
            seed=seed,
            gold=None if gold is None else split_words(gold),
            others=_read_others(loaded, others, asked),
            memory=memory,
            half=half,
            progress=watch,
            settings=settings,
        )
        about = {"reads only the gold words": True} if deaf else {}
        about |= {} if write is None else {"write": write}
        folders = {name: out if out is None or len(models) == 1 else out / folder_name(name) for name in models}
        reports = {
            name: trust_report(replace(request, model=one, out=folders[name], about={"model": name, **about}))
            for name, one in models.items()
        }
    _deliver(reports, folders, as_json)


def _names(names: str | None, kind: str) -> Any:
    chosen = "all" if names == "all" else split_names(names)
    if chosen == []:
        raise BadInput(f"No {kind} was named; leave --{kind}s out for the default {kind}s.")
    return chosen


def _load(
    name: str, device: str, precision: str, request: dict[str, Any], heard_words: list[str] | None, write: int | None
) -> "Model":
    """The model, restricted to `heard_words` or to what it writes; an invalid unit, scale or target is an error."""
    import heedful
    from heedful.document import check_unit
    from heedful.models import model_and_target
    from heedful.target import check_request, check_scale

    check_unit(request["unit"])
    check_scale(request["scale"])
    model = load_model(name, device, precision)
    check_scale(request["scale"], model.returns)
    if heard_words == []:
        raise BadInput("--deaf needs the words that the model may read; add --gold good,bad,….")
    if heard_words is not None:
        model = heedful.deaf(model, heard_words)
    if write is not None:
        model = heedful.continuation(model, write)
    model, target = model_and_target(model, request["target"], request["against"], request["scale"])
    check_request(target, request["against"], model.target_names(None))
    return model


def _read_others(model: "Model", path: Path | None, request: dict[str, Any]) -> "tuple[Explanation, ...]":
    """Explanations from other tools. Where a line has no target or unit, those of the command apply."""
    import heedful
    from heedful.exchange import read_scores

    explanations = []
    for number, row in enumerate([] if path is None else read_scores(path), start=1):
        own = {name: row[name] for name in ("target", "unit") if row[name] is not None}
        try:
            explanations.append(
                heedful.read(
                    model,
                    row["text"],
                    row["scores"],
                    name=row["name"],
                    signed=row["signed"],
                    **{**request, **own},
                )
            )
        except HeedfulError as error:
            raise BadInput(f"{path.name if path else ''}, entry {number}: {error}") from None
    return tuple(explanations)


def _deliver(reports: "dict[str, Report]", folders: dict[str, Path | None], as_json: bool) -> None:
    """Writes every report to its folder, if there is one, and prints them."""
    from heedful.evaluation.several import SideBySide
    from heedful.render import show
    from heedful.render.trust_files import write_report

    written = {out: write_report(reports[name], out) for name, out in folders.items() if out is not None}
    result = SideBySide(reports=reports) if len(reports) > 1 else next(iter(reports.values()))
    if as_json:
        typer.echo(json.dumps(result.as_dict()))
    else:
        show(result)
    for out, files in written.items():
        typer.echo(f"Wrote {', '.join(files.files)} in {out}", err=True)
        if files.missing:
            typer.echo(f"heedful: {files.missing}", err=True)
