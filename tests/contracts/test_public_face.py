"""What users can call is what it was: names, signatures, catalogue entries with their settings, command-line options.

`python -m tests.contracts.test_public_face FILE` writes the snapshot; commit d730ed7's is beside this
file. Additions pass; what is missing or different fails.
"""

import inspect
import json
import sys
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

import heedful

STORED = Path(__file__).with_name("public_face.json")


def default_of(value):
    """The default as text; functions and empty defaults by their kind alone."""
    if value is inspect.Parameter.empty or value is MISSING:
        return "required"
    return "a function" if callable(value) and not isinstance(value, type) else repr(value)


def signature_of(member):
    parameters = inspect.signature(member).parameters.values()
    return {parameter.name: [parameter.kind.name, default_of(parameter.default)] for parameter in parameters}


def settings_of(member):
    if not is_dataclass(member):
        return {}
    return {field.name: [str(field.type), default_of(field.default)] for field in fields(member)}


def catalogue_of(members):
    return {name: settings_of(member) for name, member in members.items()}


def options_of():
    from tools.command_pages import commands

    return {
        name: {
            parameter.name: [sorted(getattr(parameter, "opts", [])), default_of(parameter.default)]
            for parameter in command.params
        }
        for name, command in commands().items()
    }


def public_methods(kind):
    return {
        name: signature_of(member) for name, member in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"
    }


def properties_of(kind):
    """What can be read as an attribute; whether it is a property or a field makes no difference to a user."""
    properties = {name for name, member in inspect.getmembers(kind) if isinstance(member, property)}
    return sorted(properties | set(settings_of(kind)))


CLASSES = ["Attribution", "Comparison", "Explanation", "Generation", "Report", "Target", "Pair"]


def face():
    functions = [name for name in heedful.__all__ if inspect.isfunction(getattr(heedful, name))]
    return {
        "names": sorted(heedful.__all__),
        "signatures": {name: signature_of(getattr(heedful, name)) for name in functions},
        "constructors": {name: signature_of(getattr(heedful, name)) for name in ("Bag", "Pair", "Target")},
        "classes": {name: public_methods(getattr(heedful, name)) for name in CLASSES},
        "properties": {name: properties_of(getattr(heedful, name)) for name in CLASSES},
        "methods": catalogue_of(heedful.methods()),
        "metrics": catalogue_of(heedful.metrics()),
        "datasets": sorted(heedful.datasets()),
        "experiments": sorted(heedful.experiments()),
        "options": options_of(),
    }


def missing(before, after, path=""):
    """Every place where the snapshot holds something that is not there, or is different, now."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            yield from missing(value, after[name], f"{path}/{name}") if name in after else [f"{path}/{name} is missing"]
    elif isinstance(before, list) and path.rsplit("/", 1)[0] in ("", "/properties"):
        yield from (f"{path}/{name} is missing" for name in before if name not in after)
    elif before != after:
        yield f"{path} was {before} and is {after}"


def test_nothing_that_users_call_is_missing_or_different():
    assert list(missing(json.loads(STORED.read_text()), face())) == []


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(face(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
