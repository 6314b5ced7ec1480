"""The command `heedful list`: the catalogue, or everything about one entry of it."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Annotated, Any, get_args

import typer

from heedful.errors import unknown_name
from heedful.family import choices_of

_TITLES = {
    "methods": "Methods (heedful list METHOD shows its settings; * used by default, -exact where the model offers it):",
    "metrics": "\nMetrics (heedful list METRIC shows its settings, source and limits):",
    "probes": "\nProbes of attention (heedful list PROBE shows its settings, source and limits):",
    "datasets": "\nData sets:",
    "experiments": "\nExperiments (heedful reproduce NAME runs one):",
}


def list_catalogue(
    name: Annotated[
        str | None, typer.Argument(help="A method, metric, probe, data set or experiment, for its full description.")
    ] = None,
) -> None:
    """Print every method, metric, probe, data set and experiment, one per line; or everything about one of them.

    Example: `heedful list`, `heedful list lime`, `heedful list deletion`
    """
    catalogue = _catalogue()
    names = [entry for members in catalogue.values() for entry in members]
    if name is None:
        width = max(map(len, names)) + 2
        for kind, members in catalogue.items():
            typer.echo(_TITLES[kind])
            _print_lines(width, kind, members)
        return
    kind = next((kind for kind, members in catalogue.items() if name in members), None)
    if kind is None:
        raise unknown_name("method, metric, probe, data set or experiment", name, names)
    _print_entry(kind, name, catalogue[kind][name])


def _catalogue() -> dict[str, dict[str, Any]]:
    """Every entry by kind and name; methods in groups, probes by use, experiments by source, the others by name."""
    import heedful
    from heedful.experiments.run import experiments_in_order

    return {
        "methods": heedful.methods(),
        "metrics": dict(sorted(heedful.metrics().items())),
        "probes": heedful.probes(),
        "datasets": dict(sorted(heedful.datasets().items())),
        "experiments": dict(experiments_in_order()),
    }


def _print_lines(width: int, kind: str, members: Mapping[str, Any]) -> None:
    from heedful.explainers import default_methods
    from heedful.models import Offer

    offers = frozenset(get_args(Offer))
    usual, group = {*default_methods(offers), *default_methods(offers - {"pooling"})}, ""
    for name, member in members.items():
        label = ""
        if kind == "methods":
            if member.group != group:
                group = member.group
                typer.echo(f"  {group}")
            label = f"{'*' if name in usual else ' '} {'signed    ' if member.signed else 'unsigned  '}"
        elif kind == "metrics":
            label = f"{member.better:8}  "
        typer.echo(f"{name:{width}}{label}{member.question if kind == 'probes' else _first_line(member)}")


def _first_line(member: Any) -> str:
    return (inspect.getdoc(member) or "").splitlines()[0]


def _print_entry(kind: str, name: str, member: Any) -> None:
    if kind == "metrics":
        typer.echo(f"{member.question} ({member.better} is better)\n")
    if kind == "probes":
        typer.echo(f"{member.question}\n")
    typer.echo(inspect.getdoc(member))
    if kind == "experiments":
        typer.echo(f"\nSource: {member.source}\nRun it: heedful reproduce {name} --quick")
        return
    for line in _setting_lines(member):
        typer.echo(line)
    if kind == "metrics":
        typer.echo(f"\nSource: {member.source}\nNot for {member.not_for}")
    if kind == "probes":
        typer.echo(f"\nSource: {member.source}\nJudges attention as used for: {member.use}")
        typer.echo(f"Trains models: {'yes' if member.trains else 'no'}")
        typer.echo(f"What it shows: {member.shows}\nWhat it does not show: {member.does_not_show}")


def _setting_lines(member: Any) -> Iterable[str]:
    for field in fields(member):
        choices = " | ".join(choices_of(field))
        yield f"  --{field.name.replace('_', '-')} {field.default}{f'  ({choices})' if choices else ''}"
