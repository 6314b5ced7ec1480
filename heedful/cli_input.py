"""What a command line says: the options that commands share, the text, the settings."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.errors import BadInput
from heedful.settings import from_words

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
