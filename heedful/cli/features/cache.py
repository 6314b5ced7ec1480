"""The command `heedful features cache`: activations of a layer, written to disk once."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli.features import options as shared
from heedful.cli.input import load_model
from heedful.cli.progress import rows_bar

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="A bundled model, a folder or file, or one of Hugging Face.")
]
DtypeOption = Annotated[str, typer.Option("--dtype", help="float32, or bfloat16, which takes half the space.")]
RowsFolderOption = Annotated[
    Path, typer.Option("--out", help="The folder of the activations. The same command with the same folder resumes.")
]


def cache(
    model: ModelArgument,
    texts: shared.TextsOption,
    out: RowsFolderOption,
    layer: shared.LayerOption = None,
    part: shared.PartOption = "residual",
    n_held_out: shared.HeldOutOption = None,
    dtype: DtypeOption = "float32",
    text_column: options.TextColumnOption = None,
    label_column: options.LabelColumnOption = None,
    seed: shared.SeedOption = 0,
    device: options.DeviceOption = "cpu",
) -> None:
    """Write the activations of a layer to disk, for any number of trainings with `--activations`.

    The texts that the training holds out are left out.

    Example: `heedful features cache reviews --texts sst --layer 3 --out runs/activations`
    """
    import heedful
    from heedful.datasets.texts import texts_in
    from heedful.features.from_texts import check_layer, hold_out

    loaded = load_model(model, device)
    layer = check_layer(loaded, layer, part)
    parts = hold_out(loaded, texts_in(texts, "train", text_column, shared.labels_from(label_column)), n_held_out)
    with rows_bar("shard") as (watch, announce):
        rows = heedful.features.cache(loaded, layer, parts.training, out, part, dtype=dtype, seed=seed, progress=watch)
        n_bytes = rows.n_rows * rows.d_e * (4 if dtype == "float32" else 2)
        size = f"{rows.n_rows:,} rows of {rows.d_e:,} dimensions, {n_bytes / 1e6:,.1f} MB"
        announce(f"Wrote {out}: layer {layer}, {size}. {rows.left_out}".strip())
