"""Similarity of two explanations; it describes and does not rank methods (Neely et al., 2021)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput
from heedful.explainers import noise_floor
from heedful.explanation import Explanation
from heedful.statistics.correlation import ranks, spearman
from heedful.statistics.ties import settled

_NOT_COMPARABLE = "Only explanations of the same text at the same unit can be compared."


def rank_correlation(one: Explanation, other: Explanation) -> float:
    """Spearman's ρ of the scores; of their absolute values where a method is unsigned; NaN where one is constant."""
    return spearman(*_comparable(one, other))


def rank_correlations(explanations: Sequence[Explanation]) -> Float[np.ndarray, "method method"]:
    """`rank_correlation` of every two explanations; the scores of each are ranked once."""
    if any(explanation.units != explanations[0].units for explanation in explanations):
        raise BadInput(_NOT_COMPARABLE)
    signed = np.array([explanation.signed for explanation in explanations])
    scores = [_ranked_scores(explanation) for explanation in explanations]
    of_scores, of_sizes = _correlations(scores), _correlations([np.abs(row) for row in scores])
    return np.where(signed[:, None] & signed, of_scores, of_sizes)


def _correlations(rows: Sequence[Float[np.ndarray, "unit"]]) -> Float[np.ndarray, "method method"]:
    """Spearman's ρ of every two rows; NaN where one is constant."""
    ranked = np.stack([ranks(row) for row in rows])
    centred = ranked - ranked.mean(axis=1, keepdims=True)
    products = centred @ centred.T
    variances = np.where(np.ptp(ranked, axis=1) == 0, np.nan, products.diagonal())
    return products / np.sqrt(variances[:, None] * variances)


def top_overlap(one: Explanation, other: Explanation, n: int = 5) -> float:
    """The share of the n strongest units that both name; NaN where neither names any.

    A unit with score 0 is not named: of a method with fewer than n other scores only those are compared.
    """
    first, second = (_strongest(scores, n) for scores in _comparable(one, other))
    return len(first & second) / max(len(first), len(second)) if first or second else float("nan")


def _strongest(scores: Float[np.ndarray, "unit"], n: int) -> set[int]:
    """The n units of the largest absolute scores, without zeros."""
    order = np.argsort(-np.abs(scores), kind="stable")[:n]
    return set(order[scores[order] != 0].tolist())


def _comparable(one: Explanation, other: Explanation) -> tuple[Float[np.ndarray, "unit"], Float[np.ndarray, "unit"]]:
    if one.units != other.units:
        raise BadInput(_NOT_COMPARABLE)
    scores = _ranked_scores(one), _ranked_scores(other)
    return scores if one.signed and other.signed else (np.abs(scores[0]), np.abs(scores[1]))


def _ranked_scores(explanation: Explanation) -> Float[np.ndarray, "unit"]:
    """The scores without rounding, which must not be ranked."""
    return settled(explanation.scores, noise_floor(explanation, abs(explanation.output)))
