"""Finds the members of a family by walking its folder; a new member is one new file."""

import importlib
import pkgutil
from inspect import isabstract, isclass
from types import ModuleType
from typing import TypeVar

Contract = TypeVar("Contract")


def members(family: ModuleType, contract: type[Contract]) -> dict[str, type[Contract]]:
    """Every concrete class of the contract in the family's files, by its catalogue name."""
    found = {}
    for file in sorted(pkgutil.iter_modules(family.__path__), key=lambda file: file.name):
        module = importlib.import_module(f"{family.__name__}.{file.name}")
        for value in vars(module).values():
            own = isclass(value) and issubclass(value, contract) and value.__module__ == module.__name__
            if own and not isabstract(value):
                found[value.name] = value  # type: ignore[attr-defined]
    return found
