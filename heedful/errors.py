"""The errors that users see: each message says what was given, what is needed and what to do next."""

from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, final


class HeedfulError(Exception):
    """An error that the user can fix. The command line prints its message and exits with code 2.

    `subject` is the method or metric that the sentence is about; the message begins with its name, and `between`.
    """

    def __init__(self, sentence: str, subject: str | None = None, between: str = " ") -> None:
        # A name that was given may hold characters that cannot be printed.
        sentence = sentence.encode("utf-8", "backslashreplace").decode()
        super().__init__(sentence if subject is None else f"{subject}{between}{sentence}")
        self.sentence, self.subject = sentence, subject


class BadInput(HeedfulError, ValueError):
    """A text, target or setting that cannot be used."""


@final
class UnknownName(BadInput):
    """A method, class, unit, setting or data set that does not exist."""


@final
class TooFewSamples(BadInput):
    """`n_samples` is too small for this many units."""


@final
class Unsupported(HeedfulError):
    """A method or metric needs something that the model does not offer."""


@final
class BadCheckpoint(HeedfulError):
    """A file that is damaged or not a heedful model."""


@final
class CannotWrite(BadInput):
    """A file or folder that cannot be written: no room, no permission, no such folder."""


@final
class MissingPackage(HeedfulError):
    """An optional package is not installed."""


@final
class Offline(HeedfulError):
    """A required download failed."""


def unknown_name(kind: str, name: object, choices: Iterable[str]) -> UnknownName:
    """The error for a name that does not exist; suggests the most similar one."""
    names = sorted(choices)
    same = [known for known in names if known.casefold() == str(name).casefold()]
    near = same or get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    known = f"Known: {', '.join(names)}." if names else "There are none."
    return UnknownName(f"There is no {kind} {str(name)!r}{hint} {known}")


def in_short(value: object) -> str:
    """A value as a message shows it: at most 40 characters."""
    try:
        text = repr(value)
    except ValueError:
        # Python does not print whole numbers of more than 4,300 digits.
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def brief(self: Any) -> str:
    """A `__repr__` of dataclasses: every field in short, at most 300 characters."""
    shown = ", ".join(f"{field.name}={in_short(getattr(self, field.name))}" for field in fields(self))
    text = f"{type(self).__name__}({shown})"
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 1]}…"


def describe_error(error: BaseException) -> str:
    """The type and the first line of another package's error, safe to print in any encoding."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    line = lines[0] if len(lines[0]) <= _LINE else f"{lines[0][:_LINE]}…"
    return f"{type(error).__name__}: {line.rstrip('.')}".encode("utf-8", "backslashreplace").decode()


_LINE = 200
_SHORT = 40
_BRIEF = 300
