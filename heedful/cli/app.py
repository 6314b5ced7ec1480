"""The command line `heedful`: the typer application, its commands, and how an error ends it."""

import re
import sys
from typing import Annotated, Any

import typer

from heedful.cli.attribute import attribute
from heedful.cli.compare import compare
from heedful.cli.context import context
from heedful.cli.demo import demo
from heedful.cli.explain import explain
from heedful.cli.features import features
from heedful.cli.generate import generate
from heedful.cli.heads import heads
from heedful.cli.list import list_catalogue
from heedful.cli.locate import locate
from heedful.cli.probe import probe
from heedful.cli.reproduce import reproduce
from heedful.cli.roar import roar
from heedful.cli.train import TrainCommand, train
from heedful.cli.trust import trust
from heedful.errors import HeedfulError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Explanations of attention-based models that say how far they can be trusted.",
)
# Settings of methods, metrics, data sets and models are options too. The commands parse them themselves.
_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
# Typer carries a command-line parser of its own or uses click's; either way this is its error for a wrong command.
_UsageError: Any = typer.BadParameter.__mro__[1]


# What the parser says of an option that is not a number; heedful says it in its own words.
_NOT_A_NUMBER = re.compile(r"Invalid value for '([^']+)'[^:]*: Input should be a valid (number|integer)\b.*")
_NO_CHOICE = re.compile(r"Invalid value for '([^']+)'[^:]*: Value error, ('.*') is not one of (.*)\.$")


def _needs_number(error: "re.Match[str]") -> str:
    return f"{error[1]} must be a {'number' if error[2] == 'number' else 'whole number'}."


def _needs_choice(error: "re.Match[str]") -> str:
    return f"{error[1]} must be one of {error[3].replace(chr(39), '')}; {error[2]} was given."


def _print_version(wanted: bool) -> bool:
    import heedful

    if wanted:
        typer.echo(heedful.__version__)
        raise typer.Exit
    return wanted


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Explanations of attention-based models that say how far they can be trusted.

    Example: `heedful compare "a fine film, but too long" --out report.html`
    """


app.command(context_settings=_SETTINGS)(explain)
app.command(context_settings=_SETTINGS)(compare)
app.command()(heads)
app.command()(generate)
app.command(context_settings=_SETTINGS)(attribute)
app.command(context_settings=_SETTINGS)(context)
app.command()(locate)
app.command(context_settings=_SETTINGS)(trust)
app.command(context_settings=_SETTINGS)(probe)
app.command(context_settings=_SETTINGS)(roar)
app.command()(reproduce)
app.command(name="list")(list_catalogue)
app.command()(demo)
app.command(cls=TrainCommand, context_settings=_SETTINGS)(train)
app.add_typer(features, name="features")


def main() -> None:
    """Runs the command line. An error that the user can fix is one sentence on standard error and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except HeedfulError as error:
        typer.echo(f"heedful: {error}", err=True)
        sys.exit(2)
    except _UsageError as error:
        # Without a command the help was printed, and there is nothing to add.
        if message := error.format_message():
            message = _NO_CHOICE.sub(_needs_choice, _NOT_A_NUMBER.sub(_needs_number, message))
            typer.echo(f"heedful: {message} See heedful --help.", err=True)
        sys.exit(2)
    except OSError as error:
        typer.echo(f"heedful: {error.strerror or error}.", err=True)
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("heedful: stopped.", err=True)
        sys.exit(130)
    sys.exit(code)
