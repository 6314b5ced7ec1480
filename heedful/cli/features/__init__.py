"""The commands `heedful features …`: dictionaries of features on the command line, one file per command."""

import typer

from heedful.cli.features.measure import measure
from heedful.cli.features.show import show
from heedful.cli.features.steer import steer

features = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Features of a layer: dictionaries that sparse autoencoders learn, measured and used.",
)
features.command()(measure)
features.command()(show)
features.command()(steer)
