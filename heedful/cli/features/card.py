"""The command `heedful features card`: where a dictionary comes from, and how good it is."""

import typer

from heedful.cli.features import options as shared
from heedful.cli.options import JsonOption


def card(dictionary: shared.DictionaryArgument, as_json: JsonOption = False) -> None:
    """Print the card of a dictionary: its model and layer, its settings and data, and its metrics.

    Example: `heedful features card runs/features`
    """
    import heedful

    loaded = heedful.features.load(dictionary)
    typer.echo(loaded.card.as_json() if as_json else loaded.card.as_markdown().rstrip())
