from dataclasses import dataclass

from heedful.cli.settings_command import list_settings


@dataclass
class _Pot:
    n_litres: int = 3
    lid: str = "glass"


@dataclass
class _Nothing:
    pass


def test_settings_are_listed_as_options_with_their_defaults():
    lines = list_settings({"a pot": _Pot, "nothing": _Nothing}).splitlines()
    assert lines[2:] == ["- a pot: `--n-litres 3` `--lid glass`"]
