"""The application: version, help, and how errors end."""

import inspect
import re
import shlex
from dataclasses import fields

import pytest
import typer

import heedful
from heedful.errors import BadInput
from heedful.features.training import TrainingPlan
from heedful.models.network import Config
from heedful.models.training import Recipe
from tools.command_pages import commands


def test_the_version_is_printed(heedful_command):
    assert heedful_command("--version")[:2] == (0, f"{heedful.__version__}\n")


def test_every_command_is_a_file_of_its_own():
    modules = {name: command.callback.__module__ for name, command in commands().items()}
    assert modules == {name: f"heedful.cli.{name.replace(' ', '.')}" for name in modules}


@pytest.mark.slow
@pytest.mark.parametrize("name", commands())
def test_every_help_gives_an_example_whose_options_exist(heedful_command, name):
    code, out, _ = heedful_command(*name.split(), "--help")
    assert code == 0
    assert "Example" in out
    example = re.search(r"Examples?: `([^`]+)`", inspect.getdoc(commands()[name].callback))
    words = shlex.split(example[1])
    assert " ".join(words).startswith(f"heedful {name}")
    options = {option for parameter in commands()[name].params for option in parameter.opts}
    settings = {f"--{setting.replace('_', '-')}" for setting in known_settings()}
    assert {word for word in words if word.startswith("-")} <= options | settings


def known_settings():
    members = [*heedful.methods().values(), *heedful.metrics().values(), *heedful.datasets().values(), Config, Recipe]
    members += [*heedful.features.kinds().values(), TrainingPlan]
    return {field.name for member in members for field in fields(member)}


def test_every_option_has_a_help_text():
    for command in commands().values():
        assert [parameter.name for parameter in command.params if not getattr(parameter, "help", None)] == []


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (BadInput("The text contains no words."), 2, "heedful: The text contains no words.\n"),
        (OSError(28, "No space left on device"), 2, "heedful: No space left on device.\n"),
        (typer.Abort(), 130, "heedful: stopped.\n"),
    ],
)
def test_an_error_is_one_sentence(heedful_command, monkeypatch, error, code, sentence):
    def fail(*_):
        raise error

    monkeypatch.setattr(heedful, "load", fail, raising=False)
    result = heedful_command("heads", "a fine film")
    assert result == (code, "", sentence)


def test_an_option_that_is_not_a_number_is_said_in_plain_words(heedful_command):
    assert (
        heedful_command("explain", "a", "--seconds", "x")[2]
        == "heedful: --seconds must be a number. See heedful --help.\n"
    )
    assert "must be a whole number." in heedful_command("trust", "imdb", "-n", "x")[2]
