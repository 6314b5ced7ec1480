"""The command `heedful features effect`: what a model's outputs lose without some features."""

import json
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli.features import options as shared
from heedful.cli.progress import texts_bar

FeaturesOption = Annotated[
    list[int], typer.Option("--feature", help="A feature, by its number. May be given several times.")
]
RandomOption = Annotated[int, typer.Option("--n-random", help="The number of random sets of as many features.")]


def effect(
    dictionary: shared.DictionaryArgument,
    texts: shared.TextsOption,
    feature: FeaturesOption,
    model: shared.OfModelOption = None,
    target: options.TargetOption = None,
    n_random: RandomOption = 20,
    n_texts: shared.ManyTextsOption = 100,
    split: shared.SplitOption = "test",
    text_column: options.TextColumnOption = None,
    label_column: options.LabelColumnOption = None,
    seed: shared.SeedOption = 0,
    device: options.DeviceOption = "cpu",
    as_json: options.JsonOption = False,
) -> None:
    """Hold features at 0, and measure what the model's outputs lose, beside random features that are as often active.

    With labels the accuracy is compared, else the output.

    Example: `heedful features effect runs/features --feature 12 --feature 40 --texts sst`
    """
    import heedful
    from heedful.datasets.texts import sample_by_hash, texts_in
    from heedful.features.splice import labels_at

    loaded = shared.open_dictionary(dictionary, model, device)
    data = texts_in(texts, split, text_column, shared.labels_from(label_column))
    places = sample_by_hash(data.texts, n_texts)
    chosen = [data.texts[place] for place in places]
    assert loaded.model is not None
    labels = labels_at(loaded.model, data, places)
    with texts_bar(" before every set of features was removed") as watch:
        ablation = heedful.features.effect(
            loaded, feature, chosen, labels, target, n_random=n_random, seed=seed, progress=watch
        )
    typer.echo(json.dumps(ablation.as_dict()) if as_json else ablation.summary)
