"""What can go wrong, each said in one sentence that names what was given, what was wanted and what to do next."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import final


class HeedfulError(Exception):
    """A mistake the user can mend; the command line prints its sentence and exits with code 2."""


class BadInput(HeedfulError, ValueError):
    """The text, the target or a setting cannot be used."""


@final
class UnknownName(BadInput):
    """A method, class, unit, setting or data set that does not exist."""


@final
class TooFewSamples(BadInput):
    """`n_samples` is too small for this many units."""


@final
class Unsupported(HeedfulError):
    """The model does not offer what the explainer needs."""


@final
class BadCheckpoint(HeedfulError):
    """A file that is not a model of ours, or no longer whole."""


@final
class MissingPackage(HeedfulError):
    """An optional package is not installed."""


@final
class Offline(HeedfulError):
    """Something must be downloaded and cannot be."""


def unknown_name(kind: str, given: object, known: Iterable[str]) -> UnknownName:
    """The error for a misspelt name, with the nearest known one."""
    names = sorted(known)
    near = get_close_matches(str(given), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UnknownName(f"There is no {kind} {str(given)!r}.{hint} Known: {', '.join(names)}.")


def said(error: BaseException) -> str:
    """What an error of somebody else's code says, in one line that can be printed anywhere."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    line = lines[0] if len(lines[0]) <= _LINE else f"{lines[0][:_LINE]}…"
    return f"{type(error).__name__}: {line.rstrip('.')}".encode("utf-8", "backslashreplace").decode()


_LINE = 200
