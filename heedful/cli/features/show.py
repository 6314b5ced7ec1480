"""The command `heedful features show`: what the features of a dictionary respond to, as a page."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli.features import options as shared
from heedful.cli.progress import texts_bar

FeatureOption = Annotated[
    list[int] | None, typer.Option("--feature", help="Show this feature alone. May be given several times.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Draws the texts that labels are measured on.")]
PageOption = Annotated[
    Path | None, typer.Option("--out", help="Write a page (.html), or a folder with the page and features.jsonl.")
]


def show(
    dictionary: shared.DictionaryArgument,
    texts: shared.TextsOption,
    model: shared.OfModelOption = None,
    feature: FeatureOption = None,
    n_texts: shared.ManyTextsOption = 500,
    split: shared.SplitOption = "test",
    text_column: options.TextColumnOption = None,
    seed: SeedOption = 0,
    device: options.DeviceOption = "cpu",
    out: PageOption = None,
) -> None:
    """Show what each feature responds to: its strongest texts, its outputs, and a token rule with its held-out AUROC.

    With `--feature` its strongest texts, its outputs and the nearest features are printed.

    Example: `heedful features show runs/features --model reviews --texts sst --out features.html`
    """
    import heedful
    from heedful.features.reading.description import check_place

    if out is not None:
        check_place(out)
    loaded = shared.open_dictionary(dictionary, model, device)
    loaded.check_features(feature or [])
    with texts_bar(" before every text was read") as watch:
        descriptions = heedful.features.describe(
            loaded,
            texts,
            text=text_column,
            n_texts=n_texts,
            split=split,  # type: ignore[arg-type]
            seed=seed,
            progress=watch,
        )
    chosen = descriptions.only(feature) if feature else descriptions
    if out is not None:
        chosen.save(out)
        typer.echo(f"Wrote {out}", err=True)
    typer.echo("\n\n".join(item.details for item in chosen) if feature else chosen.summary)
