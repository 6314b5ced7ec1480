"""`fit` and `load`: dictionaries from an array of activations, and from a file."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from heedful.errors import BadCheckpoint, BadInput, UnknownName, unknown_name
from heedful.family import build, check_count, setting_types, split_settings
from heedful.features.autoencoder import Autoencoder, kinds
from heedful.features.bundled import bundled
from heedful.features.cached import CachedSource
from heedful.features.card import Card
from heedful.features.dictionary import Dictionary, file_of, read_dictionary
from heedful.features.saelens import WEIGHTS, folder_of, read_saelens
from heedful.features.source import ArraySource, Source, rows_of
from heedful.features.training import TrainingPlan, train_on
from heedful.models import Model
from heedful.models.language.activations import Part
from heedful.models.load import load as load_model
from heedful.progress import Progress, progress_of, show_progress
from heedful.run_folder import path_of


def fit(
    activations: Any,
    width: int,
    kind: str = "matryoshka",
    seed: int = 0,
    *,
    out: str | Path | None = None,
    progress: Progress | bool | None = show_progress,
    **settings: object,
) -> Dictionary:
    """Trains a dictionary of `width` features on an array of activations, rows × dimensions, or a folder of `cache`.

    `kind` is one of `heedful.features.kinds()`. Every other keyword is a setting of the kind (`k`, the number of
    active features per row: by default 32, a quarter of the dimensions or the width, whichever is least) or of the
    training (`n_rows`, `learning_rate`, `batch_size`, …). With `out`, a folder, a stopped run resumes with the same
    call, and the dictionary is saved there. `progress` is called with the rows done and their total. The same call
    gives the same bytes on one machine.
    """
    folder = None if out is None else path_of(out)
    given = CachedSource(activations, seed) if isinstance(activations, str | Path) else activations
    rows = None if isinstance(given, Source) else rows_of(given)
    autoencoder, plan = choose(kind, width, given.d_e if rows is None else rows.shape[1], {**settings, "seed": seed})
    if isinstance(given, CachedSource):
        check_rows(given.n_rows, width)
    elif rows is not None:
        check_rows(len(rows), width)
    source = given if rows is None else ArraySource(rows, seed, plan.rows_a_chunk)
    card = Card(kind, data=source.about, **source.origin)
    with progress_of(progress, "rows") as watch:
        return train_on(source, autoencoder, width, plan, card, folder, watch)


def check_rows(n_rows: int, width: int, more: str = "rows") -> None:
    """Refuses fewer rows of activations than features."""
    if n_rows < width:
        raise BadInput(
            f"{width:,} features need at least as many rows of activations, not {n_rows:,}. Give more {more}, or a "
            "smaller width."
        )


def choose(kind: str, width: int, d_e: int, settings: Mapping[str, Any]) -> tuple[Autoencoder, TrainingPlan]:
    """The kind with its settings, and the training's; k is by default 32, or a quarter of the dimensions if less."""
    members = kinds()
    if not isinstance(kind, str) or kind not in members:
        raise unknown_name("kind of autoencoder", kind, members)
    check_count("The width", width)
    for name in settings.keys() - setting_types(members[kind]).keys() - setting_types(TrainingPlan).keys():
        if owners := [other for other, member in members.items() if name in setting_types(member)]:
            raise UnknownName(f"{kind} has no setting {name!r}; only {' and '.join(owners)} have.")
    own, training = split_settings(settings, [members[kind], TrainingPlan])
    if "k" in members[kind].__dataclass_fields__:
        own = {"k": min(32, max(1, d_e // 4), width), **own}
    autoencoder = build(members[kind], kind, own)
    autoencoder.check(width)
    return autoencoder, build(TrainingPlan, "the training", training)


def load_dictionary(
    path: str | Path, model: Model | None = None, *, layer: int | None = None, part: str | None = None
) -> Dictionary:
    """Loads a dictionary from a folder or file, or a bundled one by its name; with its model it can clamp features.

    A bundled dictionary comes with its model, the bundled one of the same name, unless `model` is given. A folder may
    also be one of SAELens (cfg.json and sae_weights.safetensors). `layer` and `part` ("residual", "attention" or "mlp")
    say where a dictionary belongs that does not know it itself: one of an array, or of a hook that has no such name.
    """
    own, given = bundled(), path_of(path)
    if str(path) in own:
        dictionary = _placed(read_dictionary(own[str(path)]), layer, part)
        return dictionary.bound(load_model(str(path)) if model is None else model)
    file, folder = file_of(given), folder_of(given)
    if folder is not None and (file.name == WEIGHTS or not file.is_file()):
        dictionary = read_saelens(folder)
    elif file.is_file():
        dictionary = read_dictionary(file)
    else:
        names = f", or the name of a bundled one ({', '.join(own)})" if own else ""
        raise BadCheckpoint(f"{path} contains no dictionary; give a folder or file that `save` wrote{names}.")
    dictionary = _placed(dictionary, layer, part)
    return dictionary if model is None else dictionary.bound(model)


def _placed(dictionary: Dictionary, layer: int | None, part: str | None) -> Dictionary:
    """The dictionary in the layer that the user names; one that is known to belong to another is refused."""
    card = dictionary.card
    if layer is None and part is None:
        return dictionary
    layer = check_count("The layer", layer, 0)
    if part not in (None, *get_args(Part)):
        raise unknown_name("part", part, get_args(Part))
    named = replace(card, layer=layer, part=part or "residual")
    if card.layer >= 0 and (card.layer, card.part) != (named.layer, named.part):
        raise BadInput(f"The dictionary belongs to {card.place}, not to {named.place}; leave layer and part out.")
    return replace(dictionary, card=named)
