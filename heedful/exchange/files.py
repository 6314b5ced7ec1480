"""Scores of many texts, read from a file of JSON."""

import json
from pathlib import Path
from typing import Any

from heedful.document import UNITS, Pair
from heedful.errors import BadInput, UnknownName, unknown_name

_FIELDS = ("text", "name", "scores", "unit", "target", "signed")


def read_scores(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file of scores: one dictionary, a list of dictionaries, or one per line (JSON lines).

    Each has `text` (a string, or two for a pair), `name` and `scores` (numbers, or words with numbers), and may have
    `unit`, `target` and `signed`; missing ones are None. All are as `heedful.read` takes them; two texts become a
    `heedful.Pair`.
    """
    file = Path(path)
    try:
        content = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadInput(f"{file.name} cannot be read: {reason}.") from None
    rows = [_row(entry, where) for entry, where in _entries(content, file.name)]
    if not rows:
        raise BadInput(f'{file.name} contains no scores; write lines such as {{"text": …, "name": …, "scores": […]}}.')
    return rows


def _entries(content: str, name: str) -> list[tuple[Any, str]]:
    """The entries of the file, each with its position as text."""
    try:
        whole = json.loads(content, parse_constant=_refused)
    except ValueError:
        lines = [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
        return [(_parsed(line, f"{name}, line {number}"), f"{name}, line {number}") for number, line in lines]
    if isinstance(whole, list):
        return [(entry, f"{name}, entry {number}") for number, entry in enumerate(whole, 1)]
    return [(whole, f"{name}, line 1")]


def _parsed(line: str, where: str) -> Any:
    try:
        return json.loads(line, parse_constant=_refused)
    except json.JSONDecodeError as error:
        raise BadInput(f"{where}: invalid JSON ({error.msg}, column {error.colno}).") from None
    except ValueError as error:
        raise BadInput(f"{where}: {error}") from None


def _refused(constant: str) -> float:
    raise ValueError(f"a score is {constant}; give finite numbers.")


def _row(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise BadInput(f"{where}: got {type(entry).__name__}; give a dictionary with text, name and scores.")
    for field in entry:
        if field not in _FIELDS:
            raise UnknownName(f"{where}: {unknown_name('field', field, _FIELDS)}")
    row = {field: entry.get(field) for field in _FIELDS}
    for field in _FIELDS[:3]:
        if row[field] is None:
            raise BadInput(f"{where}: {field} is missing; give text, name and scores.")
    text, name, scores = row["text"], row["name"], row["scores"]
    if isinstance(text, list) and len(text) == 2 and all(isinstance(part, str) for part in text):
        row["text"] = Pair(text[0], text[1])
    elif not isinstance(text, str):
        raise BadInput(f"{where}: the text must be a string, or a list of two strings for a pair; got {_kind(text)}.")
    if not isinstance(name, str) or not name.strip():
        raise BadInput(f"{where}: the name must be a non-empty string, such as the name of the method; got {name!r}.")
    if not _is_scores(scores):
        raise BadInput(f"{where}: scores must be numbers, or words with a number each; got {_kind(scores)}.")
    if row["unit"] not in (None, *UNITS):
        raise UnknownName(f"{where}: {unknown_name('unit', row['unit'], UNITS)}")
    if not isinstance(row["target"], int | str | None) or isinstance(row["target"], bool):
        raise BadInput(f"{where}: the target must be a class by number or name; got {_kind(row['target'])}.")
    if not isinstance(row["signed"], bool | None):
        raise BadInput(f"{where}: signed must be true or false; got {row['signed']!r}.")
    return row


def _is_scores(scores: Any) -> bool:
    if isinstance(scores, dict):
        return bool(scores) and all(map(_is_number, scores.values()))
    if not isinstance(scores, list) or not scores:
        return False
    pairs = all(isinstance(s, list) and len(s) == 2 and isinstance(s[0], str) and _is_number(s[1]) for s in scores)
    return pairs or all(map(_is_number, scores))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: object) -> str:
    if isinstance(value, dict | list) and not value:
        return "nothing"
    return f"{value!r:.40}"
