"""Options that commands share mean the same thing everywhere."""

import inspect
from typing import get_args, get_origin

from typer.models import OptionInfo

from heedful.cli import options
from tools.command_pages import commands


def shared():
    annotated = {name: value for name, value in vars(options).items() if get_origin(value) is not None}
    return {name: get_args(value)[1] for name, value in annotated.items() if get_args(value)[1:]}


def test_every_shared_option_is_used_by_two_commands():
    users = dict.fromkeys(shared(), 0)
    for command in commands().values():
        annotations = inspect.signature(command.callback).parameters.values()
        for name in users:
            users[name] += any(parameter.annotation is getattr(options, name) for parameter in annotations)
    assert {name: n for name, n in users.items() if n < 2} == {}


def test_every_shared_option_has_one_long_name_and_a_sentence():
    for name, option in shared().items():
        assert option.help.endswith("."), name
        if isinstance(option, OptionInfo):
            # In an annotation typer takes the first name for the default.
            flags = (option.default, *option.param_decls)
            assert [flag for flag in flags if flag.startswith("--")] == [flags[-1]], name
