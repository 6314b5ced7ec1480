"""From tokens to the units people read."""

import numpy as np
from jaxtyping import Float, Int

from heedful.document import SPECIAL, Document, Unit


def sum_to(holder: Int[np.ndarray, "fine"], n: int, scores: Float[np.ndarray, "fine"]) -> Float[np.ndarray, "coarse"]:
    """Sums scores over the parts of each of n wholes: Σ_t score_t 1{t ∈ j}, as in Eq. (19)."""
    inside = holder != SPECIAL
    return np.bincount(holder[inside], weights=scores[inside], minlength=n)


def unit_maps(
    document: Document, unit: Unit, maps: Float[np.ndarray, "*head query key"]
) -> tuple[tuple[str, ...], Float[np.ndarray, "*head unit unit"]]:
    """Attention between units: summed over the tokens looked *at*, averaged over the tokens that look.

    So rows that sum to one still do. Special tokens stay, each a unit of its own, in their place. (Clark et al., 2019,
    arXiv:1906.04341, Section 4.1.)
    """
    n_tokens, unit_of, names = len(document.ids), document.unit_of(unit), document.units(unit)
    order: dict[tuple[bool, int], int] = {}
    for token, number in enumerate(unit_of.tolist()):
        order.setdefault((number == SPECIAL, token if number == SPECIAL else number), len(order))
    holder = np.array(
        [order[(n == SPECIAL, t if n == SPECIAL else n)] for t, n in enumerate(unit_of.tolist())], dtype=np.int64
    )
    member = np.zeros((n_tokens, len(order)))
    member[np.arange(n_tokens), holder] = 1.0
    labels = tuple(document.pieces[number] if special else names[number] for special, number in order)
    own = maps[..., :n_tokens, :n_tokens]
    return labels, (member / member.sum(axis=0)).T @ own @ member


def unit_scores(
    document: Document, unit: Unit, scores: Float[np.ndarray, "key"]
) -> tuple[Float[np.ndarray, "unit"], dict[str, float]]:
    """Scores of the document's units, and apart from them what special tokens and padding received.

    `scores` may run on past the document's tokens: the paper's model attends to padding (Eq. (4)).
    """
    own = scores[: len(document.ids)]
    special = document.words == SPECIAL
    apart: dict[str, float] = {}
    for piece, score, is_special in zip(document.pieces, own.tolist(), special, strict=True):
        if is_special:
            apart[piece] = apart.get(piece, 0.0) + score
    # Where padding takes no part it is not mentioned: how much of it there is depends on the other texts of a batch.
    if scores[len(own) :].any():
        apart["padding"] = float(scores[len(own) :].sum())
    return sum_to(document.unit_of(unit), document.n_units(unit), own), apart
