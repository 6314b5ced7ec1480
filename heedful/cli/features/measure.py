"""The command `heedful features measure`: how good a dictionary is on texts."""

import json
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli.features.options import (
    DictionaryArgument,
    OfModelOption,
    SplitOption,
    TextsOption,
    label_of,
    open_dictionary,
)
from heedful.cli.progress import texts_bar

NTextsOption = Annotated[int, typer.Option("-n", "--n-texts", help="At most so many texts, chosen by a hash.")]


def measure(
    dictionary: DictionaryArgument,
    texts: TextsOption,
    model: OfModelOption = None,
    n_texts: NTextsOption = 300,
    split: SplitOption = "test",
    text_column: options.TextColumnOption = None,
    label_column: options.LabelColumnOption = None,
    device: options.DeviceOption = "cpu",
    as_json: options.JsonOption = False,
) -> None:
    """Measure a dictionary on texts: what it reconstructs, from how many features, and what its model loses by it.

    Texts that are in the training of the dictionary make it look better than it is.

    Example: `heedful features measure runs/features --model reviews --texts sst --n-texts 100`
    """
    import heedful

    loaded = open_dictionary(dictionary, model, device)
    with texts_bar(" before every text was measured") as watch:
        quality = heedful.features.measure(
            loaded,
            texts=texts,
            text=text_column,
            label=label_of(label_column),
            n_texts=n_texts,
            split=split,  # type: ignore[arg-type]
            progress=watch,
        )
    typer.echo(json.dumps(quality.as_dict()) if as_json else quality.summary)
