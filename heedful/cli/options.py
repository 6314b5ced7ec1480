"""What a command line says: the options that commands share, the text, the settings."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.errors import BadInput, UnknownName, unknown_name
from heedful.family import from_words

Words = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="The text, or - to read standard input.")]
ModelOption = Annotated[
    str, typer.Option("--model", help='"paper", a folder or file of `heedful train`, or a Hugging Face folder or name.')
]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu or cuda, for Hugging Face models.")]
PrecisionOption = Annotated[str, typer.Option("--precision", help="float32, float64, bfloat16 or float16, likewise.")]
SecondOption = Annotated[
    str | None, typer.Option("--second", help="The second text of a pair; of a translator, its beginning.")
]
ScaleOption = Annotated[str, typer.Option("--scale", help="Explain the logit or the log-probability.")]
TargetOption = Annotated[
    str | None, typer.Option("--target", help="Class or next token, by number or name; default: predicted.")
]
AgainstOption = Annotated[str | None, typer.Option("--against", help="Explain the difference to this class's logit.")]
UnitOption = Annotated[
    str, typer.Option("--unit", help="token, word, type, segment or sentence; patch or segment of a picture.")
]
OutOption = Annotated[Path | None, typer.Option("--out", help="Write a report: .html, .json, .png, .svg or .pdf.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a picture.")]
MemoryOption = Annotated[str | None, typer.Option("--memory", help="What a pass may take beyond the model, say 2GB.")]
SecondsOption = Annotated[float | None, typer.Option("--seconds", help="What sampling may take; fewer samples fit it.")]
HalfOption = Annotated[bool, typer.Option("--half", help="Masks in half precision, if that moves them little.")]
FileOption = Annotated[Path | None, typer.Option("--file", help="Read the text from this file.")]


def text_and_settings(words: list[str], file: Path | None, second: str | None) -> tuple[Any, dict[str, Any]]:
    """The text, or pair of texts, and the settings among what is left of a command line."""
    texts, settings = from_words(words)
    if len(texts) > 1:
        raise BadInput(f"{texts[1]!r} is one text too many; put quotes around a text of several words.")
    if not texts and file is None:
        raise BadInput("No text was given; write one in quotes, name a --file, or write - to read standard input.")
    text = "".join(texts)
    if file is not None and text:
        raise BadInput("Give a text or --file, not both.")
    if file is not None:
        text = read_file(file)
    elif text == "-":
        try:
            text = sys.stdin.read().removeprefix("\ufeff")
        except UnicodeDecodeError:
            raise BadInput("Standard input is not UTF-8 text.") from None
    if second is not None:
        from heedful.document import Pair

        return Pair(text, second), settings
    return text, settings


def read_file(file: Path) -> str:
    """A text file, or one sentence on why it cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not a UTF-8 text file.") from None


def names_of(given: str | None) -> list[str] | None:
    """Names with commas between; None where nothing was said."""
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def words_of(given: str) -> list[str]:
    """Words with commas between; or, after an @, a file of words with commas or white space between."""
    return [word for word in re.split(r"[,\s]+", read_file(Path(given[1:])) if given[:1] == "@" else given) if word]


def read_texts(file: Path, classes: Sequence[str]) -> list[Any]:
    """Texts for a report: a line each; of a .jsonl, a dictionary a line with `text` and maybe `label`, `rationale`."""
    lines = [(number, line) for number, line in enumerate(read_file(file).splitlines(), start=1) if line.strip()]
    if not lines:
        raise BadInput(f"{file} holds no text; wanted: one a line.")
    if file.suffix.lower() != ".jsonl":
        return [line for _, line in lines]
    return [_example(line, f"{file.name}, line {number}", classes) for number, line in lines]


_FIELDS = ("text", "label", "rationale")


def _example(line: str, where: str, classes: Sequence[str]) -> Any:
    """A text, or an example if it has a label: a number or name of the model's classes."""
    from heedful.datasets import Example
    from heedful.document import Pair

    try:
        entry = json.loads(line)
    except ValueError:
        raise BadInput(f"{where}: this is not JSON.") from None
    if not isinstance(entry, dict) or "text" not in entry:
        raise BadInput(f'{where}: wanted: a dictionary such as {{"text": "a fine film", "label": 1}}.')
    for field in entry:
        if field not in _FIELDS:
            raise UnknownName(f"{where}: {unknown_name('field', field, _FIELDS)}")
    text, label, rationale = (entry.get(field) for field in _FIELDS)
    if isinstance(text, list) and len(text) == 2 and all(isinstance(part, str) for part in text):
        text = Pair(text[0], text[1])
    elif not isinstance(text, str):
        raise BadInput(f"{where}: the text is a string, or two in a list for a pair; {text!r:.40} is there.")
    if label is None:
        if rationale is not None:
            raise BadInput(f"{where}: a rationale is the evidence for a label; wanted: the label too.")
        return text
    if isinstance(label, str) and label in classes:
        label = classes.index(label)
    if not isinstance(label, int) or isinstance(label, bool) or not 0 <= label < len(classes):
        known = ", ".join(classes[:10]) + (" …" if len(classes) > 10 else "")
        raise BadInput(f"{where}: the label is a class of the model, by number or name ({known}); {label!r} is there.")
    if rationale is None:
        return Example(text, label)
    if not isinstance(rationale, list) or not all(map(_is_span, rationale)):
        raise BadInput(
            f"{where}: a rationale is spans of characters such as [[0, 4], [9, 15]]; {rationale!r:.40} is there."
        )
    return Example(text, label, tuple((start, end) for start, end in rationale))


def _is_span(span: object) -> bool:
    return isinstance(span, list) and len(span) == 2 and all(type(place) is int for place in span)
