"""Two exact searches over attention weights: the strongest adversary, and the smallest set that flips a decision.

Both hold where one head mixes numbers into one scalar, y = Σ_t α_t g_t with Σ_t α_t = 1.
"""

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import entr

LEAST_LEFT = 1e-9
"""The least share of the attention that must be left when weights are erased."""
TIE = 1e-9
"""A margin that is less than this below 0 is a tie, which flips no decision: it may be rounding."""


def strongest_adversary(
    alpha: Float[np.ndarray, "token"], g: Float[np.ndarray, "token"], low: float, high: float
) -> tuple[float, Float[np.ndarray, "token"]]:
    """The attention farthest from α, by Jensen–Shannon divergence, whose output stays within low ≤ Σ_t α'_t g_t ≤ high.

    The divergence is convex and the attention that is allowed is a polytope, so the maximum is at a vertex: at most two
    weights are not 0, and there are O(T²) candidates. A vertex is one token with low ≤ g_t ≤ high, or two tokens on
    either side of `low` or of `high`, mixed to reach it. α itself must be allowed; then the result is never empty.

    Reference: the search problem of Jain & Wallace, 2019, arXiv:1902.10186, Section 4.2.2, which they solve by ascent.
    """
    best, first, second, share = 0.0, -1, -1, 1.0
    untouched = entr(alpha / 2)
    constant = untouched.sum() - entr(alpha).sum() / 2
    alone = np.flatnonzero((low <= g) & (g <= high))
    if len(alone):
        values = constant - untouched[alone] + entr((alpha[alone] + 1) / 2)
        best, first = float(values.max()), int(alone[values.argmax()])
    for bound in (low, high):
        above, below = np.flatnonzero(g > bound), np.flatnonzero(g < bound)
        if not np.isfinite(bound) or not len(above) or not len(below):
            continue
        a = (bound - g[below]) / (g[above][:, None] - g[below])
        values = constant - untouched[above][:, None] - untouched[below] - (entr(a) + entr(1 - a)) / 2
        values += entr((alpha[above][:, None] + a) / 2) + entr((alpha[below] + 1 - a) / 2)
        row, column = np.unravel_index(values.argmax(), values.shape)
        if values[row, column] > best:
            best, share = float(values[row, column]), float(a[row, column])
            first, second = int(above[row]), int(below[column])
    if first < 0:
        return 0.0, alpha.copy()
    vertex = np.zeros_like(alpha)
    vertex[first] = share
    if second >= 0:
        vertex[second] = 1 - share
    return best, vertex


def smallest_flip(
    alpha: Float[np.ndarray, "token"],
    margins: Float[np.ndarray, "rival token"],
    erasable: Bool[np.ndarray, "token"],
) -> Int[np.ndarray, "erased"] | None:
    """The smallest set of tokens whose attention, if erased, flips the decision; None if no set does.

    `margins` are the values of the predicted class less those of each other class, bias included, so that the decision
    holds while Σ_t α_t m_t > 0 for every rival. What is left is divided by its sum, which changes no sign, so the sum
    over the tokens that are left is what decides: to remove the largest α_t m_t first is optimal, rival by rival.
    Attention must be left, `LEAST_LEFT` of it, and a tie (`TIE`) is no flip.

    Reference: Serrano & Smith, 2019, arXiv:1906.03731, Section 5, who search by given orders.
    """
    best: np.ndarray | None = None
    for margin in margins:
        # Divided by what is left, the sum is below −TIE where this one is below 0.
        part = alpha * (margin + TIE)
        order = np.lexsort((-part, ~erasable))
        n_useful = int((erasable & (part > 0)).sum())
        # Sums over what is left, not differences: 0 must stay 0.
        left, weight_left = (np.append(np.cumsum(x[order][::-1])[::-1][1:], 0.0) for x in (part, alpha))
        flips = np.flatnonzero((left < 0) & (weight_left > LEAST_LEFT * alpha.sum()))[:1]
        if len(flips) and flips[0] < n_useful and (best is None or flips[0] + 1 < len(best)):
            best = np.sort(order[: flips[0] + 1])
    return best
