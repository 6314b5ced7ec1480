"""The command `heedful list`: the catalogue, and all there is to know of a member."""

import inspect
from collections.abc import Iterable
from dataclasses import fields
from typing import Annotated, Any

import typer

from heedful.errors import unknown_name
from heedful.family import choices_of


def list_catalogue(
    name: Annotated[
        str | None, typer.Argument(help="A method, a metric, a data set or an experiment, to see more.")
    ] = None,
) -> None:
    """Print every method, metric, data set and experiment with one line each, or all there is to know of one.

    Example: `heedful list lime`, `heedful list deletion`
    """
    import heedful
    from heedful.experiments.run import experiments_in_order

    methods: dict[str, Any] = dict(heedful.methods())
    metrics: dict[str, Any] = dict(heedful.metrics())  # type: ignore[operator]
    corpora: dict[str, Any] = dict(heedful.datasets())  # type: ignore[operator]
    experiments: dict[str, Any] = dict(experiments_in_order())
    if name in methods:
        _print_member(methods[name])
    elif name in metrics:
        _print_metric(metrics[name])
    elif name in corpora:
        _print_member(corpora[name])
    elif name in experiments:
        typer.echo(f"{inspect.getdoc(experiments[name])}\n\nSource: {experiments[name].source}")
        typer.echo(f"Do it again: heedful reproduce {name} --quick")
    elif name is not None:
        known = [*methods, *metrics, *corpora, *experiments]
        raise unknown_name("method, metric, data set or experiment", name, known)
    else:
        width = max(len(known) for known in (*methods, *metrics, *corpora, *experiments)) + 2
        typer.echo("Methods (heedful list METHOD shows its settings):")
        _print_lines(width, ((known, "signed  " if one.signed else "unsigned", one) for known, one in methods.items()))
        typer.echo("\nMetrics (heedful list METRIC shows its settings, its source and what it is not for):")
        _print_lines(width, ((known, f"{one.better:8}", one) for known, one in metrics.items()))
        typer.echo("\nData sets:")
        _print_lines(width, ((known, "", one) for known, one in corpora.items()))
        typer.echo("\nExperiments (heedful reproduce NAME does one again):")
        for known, one in experiments.items():
            typer.echo(f"{known:{width}}{(inspect.getdoc(one) or '').splitlines()[0]}")


def _print_lines(width: int, members: Iterable[tuple[str, str, type]]) -> None:
    for name, kind, member in sorted(members, key=lambda line: line[0]):
        about = (inspect.getdoc(member) or "").splitlines()[0]
        typer.echo(f"{name:{width}}{f'{kind}  ' if kind else ''}{about}")


def _print_member(member: Any) -> None:
    typer.echo(inspect.getdoc(member))
    for field in fields(member):
        choices = " | ".join(choices_of(field))
        typer.echo(f"  --{field.name.replace('_', '-')} {field.default}{f'  ({choices})' if choices else ''}")


def _print_metric(metric: Any) -> None:
    typer.echo(f"{metric.question} ({metric.better} is better)\n")
    _print_member(metric)
    typer.echo(f"\nSource: {metric.source}\nNot for {metric.not_for}")
