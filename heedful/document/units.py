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
) -> tuple[tuple[str, ...], tuple[str, ...], Float[np.ndarray, "*head _ _"]]:
    """The units that look, the units looked at, and the attention between them.

    It is summed over the tokens looked *at* and averaged over those that *look*, so rows that sum to one still do.
    Special tokens stay, each a unit of its own, in their place. (Clark et al., 2019, arXiv:1906.04341, Section 4.1.)
    """
    every = np.arange(len(document.ids))
    looking, seen = every, every
    if document.segments is not None and maps.shape[-2:] != (len(every), len(every)):
        # Cross-attention: the beginning of the output looks at the source.
        looking, seen = every[document.segments == 1], every[document.segments == 0]
    (rows, by_row), (columns, by_column) = (_membership(document, unit, tokens) for tokens in (looking, seen))
    own = maps[..., : len(looking), : len(seen)]
    return rows, columns, (by_row / by_row.sum(axis=0)).T @ own @ by_column


def _membership(
    document: Document, unit: Unit, tokens: Int[np.ndarray, "_"]
) -> tuple[tuple[str, ...], Float[np.ndarray, "_ unit"]]:
    """Which unit each of some tokens belongs to, special tokens being their own, and the units' names in order."""
    numbers, names = document.unit_of(unit)[tokens].tolist(), document.units(unit)
    keys = [(True, t) if n == SPECIAL else (False, n) for t, n in zip(tokens.tolist(), numbers, strict=True)]
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    member = np.zeros((len(keys), len(order)))
    member[np.arange(len(keys)), [order[key] for key in keys]] = 1.0
    return tuple(document.pieces[number] if special else names[number] for special, number in order), member


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
