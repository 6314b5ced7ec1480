"""From tokens to the units people read."""

import numpy as np
from jaxtyping import Float, Int

from heedful.document import SPECIAL, Document, Unit


def sum_to(holder: Int[np.ndarray, "fine"], n: int, scores: Float[np.ndarray, "fine"]) -> Float[np.ndarray, "coarse"]:
    """Sums scores over the parts of each of n wholes: Σ_t score_t 1{t ∈ j}, as in Eq. (19)."""
    inside = holder != SPECIAL
    return np.bincount(holder[inside], weights=scores[inside], minlength=n)


def unit_scores(
    document: Document, unit: Unit, scores: Float[np.ndarray, "key"]
) -> tuple[Float[np.ndarray, "unit"], dict[str, float]]:
    """Scores of the document's units, and apart from them what special tokens and padding received.

    `scores` may run on past the document's tokens: the paper's model attends to padding (Eq. (4)).
    """
    own = scores[: len(document.ids)]
    special = document.words == SPECIAL
    apart = {
        piece: float(score)
        for piece, score, is_special in zip(document.pieces, own, special, strict=True)
        if is_special
    }
    apart["padding"] = float(scores[len(own) :].sum())
    return sum_to(document.unit_of(unit), document.n_units(unit), own), apart
