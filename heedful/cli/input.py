"""Reads the input of a command: texts, files of texts, lists of names, and settings."""

import os
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import typer

from heedful.errors import BadInput
from heedful.family import parse_words

if TYPE_CHECKING:
    from heedful.datasets.texts import Texts
    from heedful.document import Pair
    from heedful.features.card import Card
    from heedful.models import Model, TargetOfModel

_OTHER_TABLES = (".json", ".xlsx", ".xls", ".ods", ".feather", ".arrow", ".pkl")


@final
class Columns(NamedTuple):
    """The columns of a table that the user named; the label "none" stands for no labels."""

    text: str | None = None
    label: str | None = None
    id: str | None = None


def load_model(name: str, device: str, precision: str = "float32") -> "Model":
    """The model of a command; a terminal shows what it is, unless it is bundled.

    A small model keeps to one thread, unless OMP_NUM_THREADS says otherwise.
    """
    import torch

    import heedful
    from heedful.models.attention_hook import is_small
    from heedful.models.recording import Recordable

    model = heedful.load(name, device, precision)
    if sys.stderr.isatty() and not (files("heedful.models") / "checkpoints" / f"{name}.safetensors").is_file():
        typer.echo(f"Model: {model.description}", err=True)
    if isinstance(model, Recordable) and is_small(model.network) and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    return model


def named_models(models: list[str] | None, target: object = None) -> dict[str, str]:
    """What the options --model name, by the names that results show: if several, the ends of their paths."""
    given = list(dict.fromkeys(models or [usual_model(target)]))
    ends = [Path(model).name or model for model in given]
    return dict(zip(ends if 1 < len(given) == len(set(ends)) else given, given, strict=True))


def input_and_settings(
    words: list[str],
    file: Path | None,
    second: str | None,
    columns: Columns = Columns(),  # noqa: B008
    lines: bool = False,
) -> "tuple[str | Pair | Texts, dict[str, Any]]":
    """A text, a pair, or the texts of a table; and the settings that follow it on the command line."""
    given, settings = parse_words(words)
    if len(given) > 1:
        raise BadInput(
            f"Only one text is allowed; {given[1]!r} is a second one. Put quotes around a text of several words."
        )
    if not given and file is None:
        raise BadInput("No text was given; give one in quotes, the name of a file, or - for standard input.")
    text = "".join(given)
    if file is not None and text:
        raise BadInput("Give a text or --file, not both.")
    if "." in text:
        from heedful.datasets.texts import text_file

        file = text_file(text)
    if file is not None and (lines or is_table(file)):
        if second is not None:
            raise BadInput(f"--second belongs to one text; {file.name} may have many.")
        return read_texts(file, columns), settings
    if columns != Columns() or lines:
        raise BadInput("--text-column, --label-column, --id-column and --lines read a file of many texts; give one.")
    if file is not None:
        text = read_text_file(file)
        if len(text.split("\n")) > 2:
            typer.echo(f"Read {file.name} as one text; `heedful explain` reads one per line with --lines.", err=True)
    elif text == "-":
        try:
            text = sys.stdin.read().removeprefix("\ufeff")
        except UnicodeDecodeError:
            raise BadInput("Standard input is not UTF-8 text.") from None
    if second is not None:
        from heedful.document import Pair

        return Pair(text, second), settings
    return text, settings


def dataset_and_settings(words: list[str], file: Path | None, columns: Columns) -> "tuple[str | Texts, dict[str, Any]]":
    """The name of a data set, or the texts of a file; and the settings."""
    names, settings = parse_words(words)
    if names and file is not None:
        raise BadInput("Give a data set or --file, not both.")
    file = file or next((Path(name) for name in names if Path(name).suffix), None)
    if file is not None and len(names) > 1:
        raise BadInput(f"Give one file or one data set; {' and '.join(names)} were given.")
    if file is None and columns != Columns():
        raise BadInput("--text-column and --label-column belong to a file; give one.")
    return " ".join(names) or "imdb" if file is None else read_texts(file, columns), settings


def target_of(target: str | None, dictionary: str | None, feature: int | None) -> "str | TargetOfModel | None":
    """What `--target` names, or the feature that `--dictionary` and `--feature` name."""
    if dictionary is None and feature is None:
        return target
    if dictionary is None or feature is None:
        raise BadInput("--dictionary and --feature belong together; give both.")
    if target is not None:
        raise BadInput("Give --target or --feature, not both.")
    import heedful

    return heedful.Feature(heedful.features.load(dictionary), feature)


def usual_model(target: object) -> str:
    """The model without --model: the bundled one that the dictionary of a feature belongs to, else "paper"."""
    import heedful

    return model_of(target.dictionary.card) if isinstance(target, heedful.Feature) else "paper"


def model_of(card: "Card") -> str:
    """The bundled model that a dictionary's card names, or that has the fingerprint on the card."""
    from heedful.models.load import BUNDLED, load

    if card.model_name in BUNDLED:
        return card.model_name
    for name in BUNDLED:
        if card.model == load(name).fingerprint:
            return name
    raise BadInput("The dictionary does not contain its model; name it with --model.")


def one_text(data: "str | Pair | Texts", row: str | None, command: str) -> Any:
    """The one text that a command explains; of a table the row of that id or number."""
    from heedful.datasets.texts import Texts

    if not isinstance(data, Texts):
        if row is not None:
            raise BadInput("--row chooses a text of a table; one text was given.")
        return data
    if row is None and len(data) > 1:
        raise BadInput(
            f"{data.name} has {len(data):,} texts; {command} explains one: add --row {data.ids[len(data) // 2]}."
        )
    return data.texts[0] if row is None else data.row(row)


def is_table(file: Path) -> bool:
    """Whether the file is a table by its ending; one that heedful does not read is an error."""
    from heedful.datasets.table import TABLES

    if file.suffix.lower() in _OTHER_TABLES:
        raise BadInput(f"{file.name}: save the table as .csv, .jsonl or .parquet; {file.suffix} is not read.")
    return file.suffix.lower() in TABLES


def read_texts(file: Path, columns: Columns = Columns()) -> "Texts":  # noqa: B008
    """The texts of a file: the rows of a table, or one text per line."""
    from heedful.datasets.texts import texts_of

    label = False if is_table(file) and columns.label == "none" else columns.label
    return texts_of(file, columns.text, label, columns.id)


def read_text_file(file: Path) -> str:
    """The text of a UTF-8 file; a file that cannot be read is a one-sentence error."""
    from heedful.datasets.table import file_text

    return file_text(file)


def split_names(names: str | None) -> list[str] | None:
    """Names that are separated by commas; None if the option was not given."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def split_words(words: str) -> list[str]:
    """Words that are separated by commas; `@FILE` reads them from a file, where white space separates them too."""
    text = read_text_file(Path(words[1:])) if words[:1] == "@" else words
    return [word for word in re.split(r"[,\s]+", text) if word]
