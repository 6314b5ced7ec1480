"""The command `heedful reproduce`: the figures and numbers of the sources, done again."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from heedful.cli.options import FileOption, JsonOption, read_file
from heedful.cli.progress import experiments_bar
from heedful.errors import BadInput

if TYPE_CHECKING:
    from heedful.experiments.outcome import Outcome

_STYLES = {"agrees": "green", "differs": "yellow", "corrected": "magenta", "new": "blue", "not measured": "dim"}


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="What to reproduce; default: everything.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Say what can be reproduced, and do nothing.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few texts and small models: minutes on two cores, no data needed.")
    ] = False,
    text: Annotated[
        str | None, typer.Option("--text", help="Your own text, for the figures that explain one (docs/reproduce.md).")
    ] = None,
    file: FileOption = None,
    device: Annotated[str, typer.Option("--device", help="cpu or cuda; the full form is sized for one GPU.")] = "cpu",
    seed: Annotated[int, typer.Option("--seed", help="Where all chance comes from.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The folder; the same one goes on. Default: runs/reproduce or runs/reproduce-quick."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Do the figures and numbers of the sources again: published, ours, and how they stand to each other.

    Examples: `heedful reproduce --list`, `heedful reproduce --quick`, `heedful reproduce figure-4 --text "a fine film ,
    but far too long"`, `heedful reproduce --device cuda --out runs/full`

    Stopped or killed at any moment, the same command goes on and ends with the same numbers. The folder gets
    report.html, report.json, and for every experiment its pictures (SVG, PNG) and numbers (JSON, parquet). The full
    form is sized for one GPU and reads the reviews; --quick needs neither.
    """
    from heedful.experiments.run import experiments_in_order, reproduce

    if listed:
        _print_list(as_json)
        return
    if text is not None and file is not None:
        raise BadInput("Give --text or --file, not both.")
    if file is not None:
        text = read_file(file)
    if quick:
        import torch

        # Models this small are slower on two threads than on one, and many times so beside other work.
        torch.set_num_threads(1)
    known = experiments_in_order()
    folder = out or Path("runs/reproduce-quick" if quick else "runs/reproduce")
    console = Console(stderr=True)
    goal = len(names or known)
    with experiments_bar(goal) as (watch, finished):
        try:
            found = reproduce(
                names, folder, quick, text, device, seed, watch, lambda one: finished(f"{one.name}: {_short(one)}")
            )
        except KeyboardInterrupt:
            console.print(f"Stopped. The same command goes on from here ({folder}).")
            raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], ensure_ascii=False))
    else:
        _print_claims(found)
    typer.echo(f"Wrote {folder / 'report.html'}", err=True)
    failed = [one.name for one in found if one.failed is not None]
    if failed:
        typer.echo(f"heedful: not measured: {', '.join(failed)}; the report says why.", err=True)
        raise typer.Exit(1)


def _print_list(as_json: bool) -> None:
    from heedful.experiments.run import experiments_in_order

    rows = [
        {"name": name, "part": one.part, "title": one.title, "source": one.source}
        for name, one in experiments_in_order().items()
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


def _short(one: "Outcome") -> str:
    from heedful.experiments.outcome import count_verdicts

    return one.failed or ", ".join(f"{n} {verdict}" for verdict, n in count_verdicts([one]).items())


def _print_claims(found: "list[Outcome]") -> None:
    """A line a claim: how it stands, what it is about, what was found, what was published."""
    console = Console(highlight=False)
    width = max(len(verdict) for verdict in _STYLES) + 2
    for one in found:
        console.print(f"[bold]{one.name}[/]  {escape(one.title)}")
        table = Table.grid(padding=(0, 1))
        table.add_column(min_width=width)
        table.add_column(overflow="fold")
        for claim in one.claims:
            published = f" [dim](published: {escape(claim.published)})[/]" if claim.published else ""
            verdict = f"  [{_STYLES[claim.verdict]}]{claim.verdict}[/]"
            table.add_row(verdict, f"{escape(claim.what)}: {escape(claim.ours or '—')}{published}")
        if one.failed is not None:
            table.add_row("  [dim]not measured[/]", escape(one.failed))
        console.print(table)
