"""The commands `heedful features …`: dictionaries of features on the command line, one file per command."""

import typer

from heedful.cli.features.cache import cache
from heedful.cli.features.card import card
from heedful.cli.features.effect import effect
from heedful.cli.features.measure import measure
from heedful.cli.features.show import show
from heedful.cli.features.steer import steer
from heedful.cli.features.train import TrainFeaturesCommand, train

features = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Features of a layer: dictionaries that sparse autoencoders learn, measured and used.",
)
_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
features.command(cls=TrainFeaturesCommand, context_settings=_SETTINGS)(train)
features.command()(cache)
features.command()(measure)
features.command()(effect)
features.command()(card)
features.command()(show)
features.command()(steer)
