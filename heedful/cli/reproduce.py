"""The command `heedful reproduce`: the published figures and numbers, recomputed."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from heedful.cli.input import read_text_file
from heedful.cli.options import ATTENTION_MODELS, FileOption, JsonOption
from heedful.cli.progress import experiments_bar
from heedful.errors import BadInput

if TYPE_CHECKING:
    from heedful.experiments.outcome import Outcome

_STYLES = {"agrees": "green", "differs": "yellow", "corrected": "magenta", "new": "blue", "not measured": "dim"}


NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Experiments to run; default: all of them.")
]
ListOption = Annotated[bool, typer.Option("--list", help="List the experiments without running them.")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Few texts and small models: minutes on two cores, no data needed.")
]
TextOption = Annotated[
    str | None, typer.Option("--text", help="Your own text, for the figures that explain one (docs/reproduce.md).")
]
GpuOption = Annotated[str, typer.Option("--device", help="cpu or cuda; the full form is sized for one GPU.")]
SeedOption = Annotated[int, typer.Option("--seed", help="The seed of every random generator.")]
ModelNameOption = Annotated[
    str,
    typer.Option(
        "--model", help=f"{ATTENTION_MODELS}; for the experiments that explain one model (docs/reproduce.md)."
    ),
]
WordOption = Annotated[
    str | None, typer.Option("--word", help="Figure 5: the word of the text whose gradient is drawn.")
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="The folder; the same folder resumes the run. Default: runs/reproduce or runs/reproduce-quick.",
    ),
]


def reproduce(
    names: NamesArgument = None,
    listed: ListOption = False,
    quick: QuickOption = False,
    text: TextOption = None,
    file: FileOption = None,
    device: GpuOption = "cpu",
    seed: SeedOption = 0,
    out: FolderOption = None,
    as_json: JsonOption = False,
    model: ModelNameOption = "paper",
    word: WordOption = None,
) -> None:
    """Reproduce the figures and numbers of the sources, and compare them with the published ones.

    Examples: `heedful reproduce --list`, `heedful reproduce --quick`, `heedful reproduce figure-4 --text "a fine film ,
    but far too long"`, `heedful reproduce --device cuda --out runs/full`

    Stop it at any time; the same command resumes and ends with the same numbers. The folder gets report.html,
    report.json, and for every experiment its figures (SVG, PNG) and numbers (JSON, parquet). The full form is sized for
    one GPU and needs the IMDB reviews; --quick needs neither.
    """
    if listed:
        _print_list(as_json)
        return
    if text is not None and file is not None:
        raise BadInput("Give --text or --file, not both.")
    folder = out or Path("runs/reproduce-quick" if quick else "runs/reproduce")
    text = text if file is None else read_text_file(file)
    outcomes = _run(names, folder, quick, {"text": text, "device": device, "seed": seed, "model": model, "word": word})
    if as_json:
        typer.echo(json.dumps([asdict(outcome) for outcome in outcomes], ensure_ascii=False))
    else:
        _print_claims(outcomes)
    typer.echo(f"Wrote {folder / 'report.html'}", err=True)
    if _failed(outcomes, bool(names)):
        raise typer.Exit(1)


def _failed(outcomes: "list[Outcome]", named: bool) -> bool:
    """Says what was not measured; what was not named and does not apply to the model has not failed."""
    missing = [outcome for outcome in outcomes if outcome.failed is not None]
    if missing:
        shown = ", ".join(outcome.name for outcome in missing)
        typer.echo(f"heedful: not measured: {shown}; the report says why.", err=True)
    return any(named or outcome.applies for outcome in missing)


def _run(names: list[str] | None, folder: Path, quick: bool, settings: dict[str, Any]) -> "list[Outcome]":
    """Runs the experiments with a progress bar."""
    from heedful.experiments.run import chosen_experiments, reproduce

    if quick:
        import torch

        # Models this small are slower on two threads than on one, and many times so beside other work.
        torch.set_num_threads(1)
    with experiments_bar(len(chosen_experiments(names, settings["model"]))) as (watch, finish):
        callbacks = {"progress": watch, "finished": lambda outcome: finish(f"{outcome.name}: {_summary(outcome)}")}
        try:
            return reproduce(names, folder, quick, **settings, **callbacks)
        except KeyboardInterrupt:
            Console(stderr=True).print(f"Stopped. The same command resumes the run in {folder}.")
            raise typer.Exit(130) from None


def _print_list(as_json: bool) -> None:
    from heedful.experiments.run import experiments_in_order

    rows = [
        {"name": name, "part": experiment.part, "title": experiment.title, "source": experiment.source}
        for name, experiment in experiments_in_order().items()
    ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    width = max(len(row["name"]) for row in rows) + 2
    part = ""
    for row in rows:
        if row["part"] != part:
            part = row["part"]
            typer.echo(f"{'' if row is rows[0] else chr(10)}{part.capitalize()}")
        typer.echo(f"  {row['name']:{width}}{row['title']} ({row['source']})")


def _summary(outcome: "Outcome") -> str:
    from heedful.experiments.outcome import count_verdicts

    return outcome.failed or ", ".join(f"{n} {verdict}" for verdict, n in count_verdicts([outcome]).items())


def _print_claims(outcomes: "list[Outcome]") -> None:
    """Prints one line per claim: the verdict, what is claimed, our number, the published number."""
    console = Console(highlight=False)
    width = max(len(verdict) for verdict in _STYLES) + 2
    for outcome in outcomes:
        console.print(f"[bold]{outcome.name}[/]  {escape(outcome.title)}")
        table = Table.grid(padding=(0, 1))
        table.add_column(min_width=width)
        table.add_column(overflow="fold")
        for claim in outcome.claims:
            published = f" [dim](published: {escape(claim.published)})[/]" if claim.published else ""
            verdict = f"  [{_STYLES[claim.verdict]}]{claim.verdict}[/]"
            ours = claim.why if claim.verdict == "not measured" else claim.ours or "—"
            table.add_row(verdict, f"{escape(claim.what)}: {escape(ours)}{published}")
        if outcome.failed is not None:
            table.add_row("  [dim]not measured[/]", escape(outcome.failed))
        console.print(table)
