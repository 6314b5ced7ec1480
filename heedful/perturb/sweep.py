"""f over many masks."""

import numpy as np
from jaxtyping import Bool, Float

from heedful.document import SPECIAL, Absence, Document, Unit
from heedful.errors import BadInput
from heedful.models import Model
from heedful.target import Target

_CELLS = 16_000_000


def sweep(
    model: Model,
    document: Document,
    target: Target,
    unit: Unit,
    keep: Bool[np.ndarray, "mask unit"],
    absence: Absence,
) -> Float[np.ndarray, "mask"]:
    """The target for the document with only the kept units left, for every mask.

    Masks are spelt out over tokens at most 16 MB at a time, so memory does not grow with their number.
    """
    unit_of = document.unit_of(unit)
    portion = max(1, _CELLS // len(unit_of))
    values = []
    for start in range(0, len(keep), portion):
        # Special tokens belong to no unit and always stay.
        tokens = keep[start : start + portion][:, unit_of] | (unit_of == SPECIAL)
        values.append(model.masked(document, target, tokens, absence))
    found = np.concatenate(values)
    if not np.isfinite(found).all():
        raise BadInput(
            "The model's answer to some thinned texts is not a finite number: nothing is left to attend to there."
        )
    return found


def distinct(keep: Bool[np.ndarray, "mask unit"]) -> tuple[Bool[np.ndarray, "distinct unit"], np.ndarray]:
    """Each mask once, in order of first appearance, and for every mask which of them it is."""
    packed = np.ascontiguousarray(np.packbits(keep, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return keep[first[order]], rank[place]
