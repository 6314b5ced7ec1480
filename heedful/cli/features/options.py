"""Arguments and options that the commands of features share, and the dictionary that they name."""

from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.input import load_model
from heedful.errors import BadInput

if TYPE_CHECKING:
    from heedful.features.dictionary import Dictionary

DictionaryArgument = Annotated[
    str, typer.Argument(metavar="DICTIONARY", help="A folder or file with a dictionary, or the name of a bundled one.")
]
OfModelOption = Annotated[
    str | None, typer.Option("--model", help="The model of the dictionary; a bundled dictionary knows its own.")
]
TextsOption = Annotated[
    str,
    typer.Option(
        "--texts", help="A data set that `heedful list` prints, a .csv, .tsv, .jsonl or .parquet table, or a .txt file."
    ),
]
SplitOption = Annotated[str, typer.Option("--split", help="Of a data set: train, validation or test.")]


def open_dictionary(name: str, model: str | None, device: str = "cpu", needs_model: bool = True) -> "Dictionary":
    """The dictionary of a command, with its model."""
    import heedful

    dictionary = heedful.features.load(name)
    if model is not None:
        return heedful.features.load(name, load_model(model, device))
    if dictionary.model is None and needs_model:
        raise BadInput("The dictionary does not contain its model; name it with --model.")
    return dictionary


def label_of(column: str | None) -> str | bool | None:
    """What `--label-column` names; "none" stands for no labels."""
    return False if column == "none" else column
