"""Arguments and options that the commands of features share, and the dictionary that they name."""

from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.input import load_model, model_of

if TYPE_CHECKING:
    from heedful.features.dictionary import Dictionary

DictionaryArgument = Annotated[
    str, typer.Argument(metavar="DICTIONARY", help="A folder or file with a dictionary, or the name of a bundled one.")
]
OfModelOption = Annotated[
    str | None,
    typer.Option("--model", help="The model of the dictionary; default: the bundled model that its card names."),
]
TextsOption = Annotated[
    str,
    typer.Option(
        "--texts", help="A data set that `heedful list` prints, a .csv, .tsv, .jsonl or .parquet table, or a .txt file."
    ),
]
SplitOption = Annotated[str, typer.Option("--split", help="Of a data set: train, validation or test.")]
LayerOption = Annotated[
    int | None, typer.Option("--layer", help="The layer whose activations are read, from 0; default: the middle one.")
]
PartOption = Annotated[
    str, typer.Option("--part", help="residual, which enters the layer, or what its attention or mlp adds to it.")
]
HeldOutOption = Annotated[
    int | None,
    typer.Option("--n-held-out", help="Texts that are held out, chosen by a hash; default: a tenth, at most 300."),
]
ManyTextsOption = Annotated[int, typer.Option("-n", "--n-texts", help="At most so many texts, chosen by a hash.")]
SeedOption = Annotated[int, typer.Option("--seed", help="The seed of the random generator.")]


def open_dictionary(name: str, model: str | None, device: str = "cpu") -> "Dictionary":
    """The dictionary of a command with its model: the one that is named, or a bundled one that its card names."""
    import heedful

    dictionary = heedful.features.load(name)
    return dictionary.bound(load_model(model_of(dictionary.card) if model is None else model, device))


def labels_from(column: str | None) -> str | bool | None:
    """What `--label-column` names; "none" stands for no labels."""
    return False if column == "none" else column
