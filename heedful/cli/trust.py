"""The command `heedful trust`: which explanation to believe, for this model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from heedful.cli.options import (
    AgainstOption,
    DeviceOption,
    HalfOption,
    JsonOption,
    MemoryOption,
    ModelOption,
    PrecisionOption,
    ScaleOption,
    TargetOption,
    UnitOption,
    names_of,
    read_texts,
    words_of,
)
from heedful.cli.progress import texts_bar
from heedful.errors import BadInput, HeedfulError, unknown_name
from heedful.family import from_words


def trust(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="DATASET", help="A data set of `heedful list`; default: imdb.")
    ] = None,
    model: ModelOption = "paper",
    n: Annotated[int | None, typer.Option("-n", "--n", help="How many texts, drawn by chance; default: 200.")] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help='Names with commas between, or "all"; default: those that are quick.'),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", help='Names with commas between, or "all"; default: those that are quick.'),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="train, validation or test.")] = "test",
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", help='Texts, one a line, instead of a data set; .jsonl: {"text", "label", "rationale"}.'
        ),
    ] = None,
    gold: Annotated[
        str | None, typer.Option("--gold", help="Words that the model is known to use, commas between; or @FILE.")
    ] = None,
    deaf: Annotated[bool, typer.Option("--deaf", help="Make the model deaf to all words but those of --gold.")] = False,
    others: Annotated[
        Path | None, typer.Option("--others", help='Scores made elsewhere: a line {"text", "name", "scores"} each.')
    ] = None,
    target: TargetOption = None,
    against: AgainstOption = None,
    scale: ScaleOption = "logit",
    unit: UnitOption = "word",
    seed: Annotated[int, typer.Option("--seed", help="Which texts are drawn, and how they are resampled.")] = 0,
    device: DeviceOption = "cpu",
    precision: PrecisionOption = "float32",
    memory: MemoryOption = None,
    half: HalfOption = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder for the report and its numbers; the same one goes on.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure which explanation to believe: every method on every metric, over a sample of texts, against a control.

    Example: `heedful trust imdb -n 200 --methods lime,leave-one-out,attention-mean --out runs/trust`

    Every setting of methods and metrics is an option, such as `--n-samples 500` or `--absence delete`. Ctrl-C gives the
    report of what was measured; with --out the same command goes on from there. The folder gets report.html,
    report.json, measurements.parquet and scores.parquet.
    """
    import heedful
    from heedful.document import check_unit
    from heedful.render import show
    from heedful.render.trust_files import write_report
    from heedful.target import check_request, check_scale

    names, settings = from_words(words or [])
    if names and file is not None:
        raise BadInput("Give a data set or --file, not both.")
    chosen = "all" if methods == "all" else names_of(methods)
    if chosen == []:
        raise BadInput("No method was named; leave --methods out for the usual ones.")
    check_unit(unit)
    check_scale(scale)
    loaded = heedful.load(model, device, precision)
    if deaf:
        if gold is None:
            raise BadInput("--deaf needs the words that the model is to hear: --gold good,bad,….")
        loaded = heedful.deaf(loaded, words_of(gold))
    check_request(target, against, loaded.classes)
    texts: Any = " ".join(names) or "imdb"
    if file is not None:
        texts = read_texts(file, loaded.classes)
    asked: dict[str, Any] = {"target": target, "against": against, "scale": scale, "unit": unit}
    with texts_bar() as watch:
        report = heedful.trust(
            loaded,
            texts,
            chosen,
            "all" if metrics == "all" else names_of(metrics),
            n,
            split=_split(split),
            seed=seed,
            gold=None if gold is None else words_of(gold),
            others=() if others is None else _read_in(loaded, others, asked),
            out=out,
            memory=memory,
            half=half,
            progress=watch,
            **asked,
            **settings,
        )
    about = {**report.asked, "model": model, **({"deaf to all but gold": True} if deaf else {})}
    report = replace(report, asked=about, dataset=report.dataset if file is None else file.name)
    written = None if out is None else write_report(report, out)
    if as_json:
        typer.echo(json.dumps(report.as_dict()))
    else:
        show(report)
    if written is not None:
        typer.echo(f"Wrote {', '.join(written.files)} in {out}", err=True)
        if written.missing:
            typer.echo(f"heedful: {written.missing}", err=True)


def _split(given: str) -> Any:
    from heedful.datasets import Split

    if given not in get_args(Split):
        raise unknown_name("split", given, get_args(Split))
    return given


def _read_in(model: Any, path: Path, asked: dict[str, Any]) -> list[Any]:
    """Explanations that others made; what a line does not say is as the command says."""
    import heedful
    from heedful.exchange import read_scores

    found = []
    for number, row in enumerate(read_scores(path), start=1):
        said = {name: asked[name] if row[name] is None else row[name] for name in ("target", "unit")}
        try:
            found.append(
                heedful.read(
                    model,
                    row["text"],
                    row["scores"],
                    name=row["name"],
                    against=asked["against"],
                    scale=asked["scale"],
                    signed=row["signed"],
                    **said,
                )
            )
        except HeedfulError as error:
            raise BadInput(f"{path.name}, entry {number}: {error}") from None
    return found
