"""Reads the input of a command: texts, files of texts, lists of names, and settings."""

import json
import os
import re
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import BadInput, UnknownName, unknown_name
from heedful.family import parse_words

if TYPE_CHECKING:
    from heedful.document import Pair
    from heedful.models import Model

SMALL = 20_000_000
"""The number of weights below which a command uses one thread."""
_FIELDS = ("text", "label", "rationale")


def load_model(name: str, device: str, precision: str = "float32") -> "Model":
    """The model of a command; a terminal shows what it is, unless it is bundled.

    A small model keeps to one thread, unless OMP_NUM_THREADS says otherwise.
    """
    import torch
    import typer

    import heedful
    from heedful.models.recording import Recordable

    model = heedful.load(name, device, precision)
    if sys.stderr.isatty() and not (files("heedful.models") / "checkpoints" / f"{name}.safetensors").is_file():
        typer.echo(f"Model: {model.description}", err=True)
    small = isinstance(model, Recordable) and sum(p.numel() for p in model.network.parameters()) < SMALL
    if small and "OMP_NUM_THREADS" not in os.environ:
        # Several threads wait for each other in every operation, and many times longer beside other work.
        torch.set_num_threads(1)
    return model


def named_models(models: list[str] | None) -> dict[str, str]:
    """What the options --model name, by the names that results show: if several, the ends of their paths."""
    given = list(dict.fromkeys(models or ["paper"]))
    ends = [Path(model).name or model for model in given]
    return dict(zip(ends if 1 < len(given) == len(set(ends)) else given, given, strict=True))


def text_and_settings(words: list[str], file: Path | None, second: str | None) -> tuple[Any, dict[str, Any]]:
    """The text, or the pair of texts, and the settings that follow it on the command line."""
    texts, settings = parse_words(words)
    if len(texts) > 1:
        raise BadInput(
            f"Only one text is allowed; {texts[1]!r} is a second one. Put quotes around a text of several words."
        )
    if not texts and file is None:
        raise BadInput("No text was given; pass one in quotes, use --file, or pass - to read standard input.")
    text = "".join(texts)
    if file is not None and text:
        raise BadInput("Give a text or --file, not both.")
    if file is not None:
        text = read_text_file(file)
    elif text == "-":
        try:
            text = sys.stdin.read().removeprefix("\ufeff")
        except UnicodeDecodeError:
            raise BadInput("Standard input is not UTF-8 text.") from None
    if second is not None:
        from heedful.document import Pair

        return Pair(text, second), settings
    return text, settings


def read_text_file(file: Path) -> str:
    """The text of a UTF-8 file; a file that cannot be read is a one-sentence error."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not a UTF-8 text file.") from None


def split_names(names: str | None) -> list[str] | None:
    """Names that are separated by commas; None if the option was not given."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def split_words(words: str) -> list[str]:
    """Words that are separated by commas; `@FILE` reads them from a file, where white space separates them too."""
    text = read_text_file(Path(words[1:])) if words[:1] == "@" else words
    return [word for word in re.split(r"[,\s]+", text) if word]


def read_texts(file: Path, classes: Sequence[str]) -> list[Any]:
    """The texts of a file, one per line. A line of a .jsonl file has `text` and may have `label` and `rationale`."""
    lines = [(number, line) for number, line in enumerate(read_text_file(file).splitlines(), start=1) if line.strip()]
    if not lines:
        raise BadInput(f"{file} contains no text; write one text per line.")
    if file.suffix.lower() != ".jsonl":
        return [line for _, line in lines]
    return [_parse_example(line, f"{file.name}, line {number}", classes) for number, line in lines]


def _parse_example(line: str, where: str, classes: Sequence[str]) -> Any:
    """The text of the line, or an example if the line has a label."""
    from heedful.datasets import Example

    try:
        entry = json.loads(line)
    except ValueError:
        raise BadInput(f"{where}: invalid JSON.") from None
    if not isinstance(entry, dict) or "text" not in entry:
        raise BadInput(f'{where}: a line must be a dictionary such as {{"text": "a fine film", "label": 1}}.')
    for field in entry:
        if field not in _FIELDS:
            raise UnknownName(f"{where}: {unknown_name('field', field, _FIELDS)}")
    text, rationale = _parse_text(entry["text"], where), entry.get("rationale")
    if entry.get("label") is None:
        if rationale is not None:
            raise BadInput(f"{where}: a rationale needs a label; add one.")
        return text
    label = _parse_label(entry["label"], where, classes)
    return Example(text, label, None if rationale is None else _parse_rationale(rationale, where))


def _parse_text(text: Any, where: str) -> "str | Pair":
    from heedful.document import Pair

    if isinstance(text, list) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return Pair(text[0], text[1])
    if not isinstance(text, str):
        raise BadInput(f"{where}: the text must be a string, or a list of two strings for a pair; got {text!r:.40}.")
    return text


def _parse_label(label: Any, where: str, classes: Sequence[str]) -> int:
    if isinstance(label, str) and label in classes:
        return classes.index(label)
    if not isinstance(label, int) or isinstance(label, bool) or not 0 <= label < len(classes):
        names = ", ".join(classes[:10]) + (" …" if len(classes) > 10 else "")
        raise BadInput(f"{where}: the label must be a class of the model, by number or name ({names}); got {label!r}.")
    return label


def _parse_rationale(rationale: Any, where: str) -> tuple[tuple[int, int], ...]:
    if not isinstance(rationale, list) or not all(map(_is_span, rationale)):
        raise BadInput(
            f"{where}: a rationale must be spans of characters such as [[0, 4], [9, 15]]; got {rationale!r:.40}."
        )
    return tuple((start, end) for start, end in rationale)


def _is_span(span: object) -> bool:
    return isinstance(span, list) and len(span) == 2 and all(type(place) is int for place in span)
