"""The command `heedful features measure`: how good a dictionary is on texts."""

import json

import typer

from heedful.cli import options
from heedful.cli.features import options as shared
from heedful.cli.progress import texts_bar


def measure(
    dictionary: shared.DictionaryArgument,
    texts: shared.TextsOption,
    model: shared.OfModelOption = None,
    n_texts: shared.ManyTextsOption = 300,
    split: shared.SplitOption = "test",
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

    loaded = shared.open_dictionary(dictionary, model, device)
    with texts_bar(" before every text was measured") as watch:
        quality = heedful.features.measure(
            loaded,
            texts=texts,
            text=text_column,
            label=shared.labels_from(label_column),
            n_texts=n_texts,
            split=split,  # type: ignore[arg-type]
            progress=watch,
        )
    typer.echo(json.dumps(quality.as_dict()) if as_json else quality.summary)
