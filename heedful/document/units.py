"""Scores and attention of tokens, summed to units."""

import numpy as np
from jaxtyping import Float, Int

from heedful.document import SPECIAL, Document, Unit


def sum_to(holder: Int[np.ndarray, "fine"], n: int, scores: Float[np.ndarray, "fine"]) -> Float[np.ndarray, "coarse"]:
    """Sums scores over the parts of each of n wholes: Σ_t score_t 1{t ∈ j}, as in Eq. (19)."""
    inside = holder != SPECIAL
    return np.bincount(holder[inside], weights=scores[inside], minlength=n)


def plural(unit: Unit) -> str:
    """The plural of a unit's name: words, patches."""
    return "patches" if unit == "patch" else f"{unit}s"


def unit_maps(
    document: Document, unit: Unit, maps: Float[np.ndarray, "*head query key"]
) -> tuple[tuple[str, ...], tuple[str, ...], Float[np.ndarray, "*head _ _"]]:
    """The units that attend, the units attended to, and the attention between them.

    Attention is summed over the tokens attended *to* and averaged over those that *attend*, so rows that sum to one
    still do. Each special token is a unit of its own. (Clark et al., 2019, arXiv:1906.04341, Section 4.1.)
    """
    every = np.arange(len(document.ids))
    queries, keys = every, every
    if document.segments is not None and maps.shape[-2:] != (len(every), len(every)):
        # Cross-attention: the start of the output attends to the source.
        queries, keys = every[document.segments == 1], every[document.segments == 0]
    (rows, by_row), (columns, by_column) = (_membership(document, unit, tokens) for tokens in (queries, keys))
    own = maps[..., : len(queries), : len(keys)]
    return rows, columns, (by_row / by_row.sum(axis=0)).T @ own @ by_column


def _membership(
    document: Document, unit: Unit, tokens: Int[np.ndarray, "_"]
) -> tuple[tuple[str, ...], Float[np.ndarray, "_ unit"]]:
    """The names of the units of some tokens, special tokens included, and the 0/1 matrix of membership."""
    numbers, names = document.unit_of(unit)[tokens].tolist(), document.units(unit)
    keys = [(True, t) if n == SPECIAL else (False, n) for t, n in zip(tokens.tolist(), numbers, strict=True)]
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    member = np.zeros((len(keys), len(order)))
    member[np.arange(len(keys)), [order[key] for key in keys]] = 1.0
    return tuple(document.pieces[number] if special else names[number] for special, number in order), member


def unit_scores(
    document: Document, unit: Unit, scores: Float[np.ndarray, "key"]
) -> tuple[Float[np.ndarray, "unit"], dict[str, float]]:
    """Scores of the document's units, and separately the scores of special tokens and padding.

    `scores` may be longer than the document: the paper's model attends to padding (Eq. (4)).
    """
    own = scores[: len(document.ids)]
    special = document.words == SPECIAL
    others: dict[str, float] = {}
    for piece, score, is_special in zip(document.pieces, own.tolist(), special, strict=True):
        if is_special:
            others[piece] = others.get(piece, 0.0) + score
    # Padding without attention is left out: its amount depends on the other texts of the batch.
    if scores[len(own) :].any():
        others["padding"] = float(scores[len(own) :].sum())
    return sum_to(document.unit_of(unit), document.n_units(unit), own), others
