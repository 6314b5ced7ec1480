"""Catalogues of methods, metrics, data sets and experiments, and the settings of their members.

A member is a dataclass in a file of its own; its fields are its settings. Users give settings as Python values or, on
the command line, as strings.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields
from functools import cache
from inspect import isabstract, isclass
from numbers import Integral, Real
from types import MappingProxyType, ModuleType, UnionType
from typing import Any, Literal, TypeVar, Union, final, get_args, get_origin

from heedful.errors import BadInput, in_short, unknown_name

Contract = TypeVar("Contract")
Settled = TypeVar("Settled")
_LARGEST = 10**300


@cache
def members(package: str, contract: type[Contract]) -> Mapping[str, type[Contract]]:
    """Every concrete class of the contract in a package and its subpackages, by catalogue name; cached."""
    root = importlib.import_module(package)
    catalogue = {}
    for file in sorted(pkgutil.walk_packages(root.__path__, f"{package}."), key=lambda file: file.name):
        module = importlib.import_module(file.name)
        for value in vars(module).values():
            own = isclass(value) and issubclass(value, contract) and value.__module__ == module.__name__
            # A class whose name is known only of an instance, such as a file of texts, is no member.
            if own and not isabstract(value) and isinstance(value.name, str):  # type: ignore[attr-defined]
                catalogue[value.name] = value  # type: ignore[attr-defined]
    return MappingProxyType(catalogue)


@final
class FamilyPackage(ModuleType):
    """A package that can be called: `heedful.metrics()` is the catalogue, `heedful.metrics` the folder."""

    def __call__(self) -> dict[str, type[Any]]:
        return dict(members(self.__name__, self._contract))

    @staticmethod
    def make(package: str, contract: type) -> None:
        """Makes an imported package callable, as its catalogue."""
        module = sys.modules[package]
        module.__dict__["_contract"] = contract
        module.__class__ = FamilyPackage


def setting_types(member: type) -> dict[str, Any]:
    """The settings of a member with their types."""
    return {field.name: field.type for field in fields(member)}


def choices_of(setting: Field) -> list[str]:
    """The values that a setting accepts, if there are few; includes `a number` if it accepts words and numbers."""
    if _is_union(setting.type):
        number, words = get_args(setting.type)
        return [{int: "a whole number", float: "a number"}[number], *map(str, get_args(words))]
    return [str(choice) for choice in get_args(setting.type)]


def build(member: type[Settled], name: str, settings: Mapping[str, object]) -> Settled:
    """The member with these settings, each checked and converted to its type."""
    types = setting_types(member)
    for setting in settings:
        if setting not in types:
            raise unknown_name(f"setting of {name}", setting, types)
    return member(**{setting: _as_type(types[setting], setting, value) for setting, value in settings.items()})


def split_settings(settings: Mapping[str, Any], members: Sequence[type]) -> list[dict[str, Any]]:
    """The settings that apply to each member. A setting that no member has is an error."""
    types_of = [setting_types(member) for member in members]
    for name in settings:
        if not any(name in types for types in types_of):
            raise unknown_name("setting", name, set().union(*types_of))
    return [{name: settings[name] for name in settings if name in types} for types in types_of]


def parse_words(words: Iterable[str]) -> tuple[list[str], dict[str, Any]]:
    """Splits a command line into plain words and settings, written `--n-samples 1000` or `--n-samples=1000`."""
    plain: list[str] = []
    settings: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        # A text may begin with dashes; an option has no spaces in its name.
        if not word.startswith("--") or " " in word.partition("=")[0]:
            plain.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            if not rest:
                raise BadInput(f"{word} needs a value.")
            value = rest.pop(0)
        settings[name.replace("-", "_")] = value
    return plain, settings


def check_seed(seed: object) -> None:
    """Refuses a seed that no random generator takes."""
    if not isinstance(seed, Integral) or seed < 0:
        raise BadInput(f"The seed must be a whole number ≥ 0; {in_short(seed)} was given.")


def check_count(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Refuses what is no whole number in this range; `name` begins the sentence."""
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else least - 1
    if number < least or (most or number) < number:
        limits = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise BadInput(f"{name} must be a whole number {limits}; {in_short(value)} was given.")
    return number


def _is_union(kind: Any) -> bool:
    return isinstance(kind, UnionType) or get_origin(kind) is Union


def _as_type(kind: Any, name: str, value: object, alternative: str = "") -> bool | int | float | str:
    if _is_union(kind):
        # A number, or a word in its place, such as "auto".
        number, words = get_args(kind)
        is_word = isinstance(value, str) and value in get_args(words)
        return str(value) if is_word else _as_type(number, name, value, f" or {_listed(get_args(words))}")
    if get_origin(kind) is Literal:
        if not isinstance(value, str) or value not in get_args(kind):
            # "There is no loss 'x'", but not "There is no rows 'x'".
            many = name.endswith("s") and not name.endswith("ss")
            raise unknown_name(f"value of {name}" if many else name, value, get_args(kind))
        return str(value)
    if kind is str:
        return str(value)
    if kind is bool:
        if str(value).lower() not in ("true", "false"):
            raise BadInput(f"{name} must be true or false; {in_short(value)} was given.")
        return str(value).lower() == "true"
    return _as_number(kind, name, value, alternative)


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"one of {', '.join(words)}"


def _as_number(kind: Any, name: str, value: object, alternative: str) -> int | float:
    try:
        if not isinstance(value, str | Real):
            raise TypeError
        number = kind(value)
        if kind is int and abs(number) > _LARGEST:
            raise OverflowError
        if isinstance(value, float) and number != value and value == value:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        noun = "a whole number" if kind is int else "a number"
        raise BadInput(f"{name} must be {noun}{alternative}; {in_short(value)} was given.") from None
    return number
