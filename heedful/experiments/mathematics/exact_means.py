"""Exact means over all sets of one size, by adding one unit after another; nothing is sampled.

Among the sets that remove s of k units a share s/k removes the last one, so a mean over them is a convex combination of
two means over k − 1 units: d²/2 steps instead of 2^d sets, without cancellation.
"""

import numpy as np
from jaxtyping import Float

from heedful.experiments.mathematics.document_game import DocumentGame
from heedful.theory.laplace import exponential_sum, octave_of


def mean_by_size(game: DocumentGame) -> Float[np.ndarray, "size"]:
    """E_s[f] of a game for s = 0 … d removed units.

    1/D is a sum of exponentials with a relative error of 1e-12. Only that sum is shared with `theory/game.py`, so each
    can check the other.
    """
    a, b, A, B, D_F = game.a, game.b, game.A, game.B, game.D_F
    low, high = D_F + np.minimum(a, b).sum(axis=1), D_F + np.maximum(a, b).sum(axis=1)
    rule = exponential_sum(octave_of(float((high / low).max())), tight=True)
    lam, weights = rule.nodes[:, None] / high, rule.weights[:, None] / high
    # Seen from the smallest D, so that no factor exceeds one.
    least = np.minimum(a, b)
    sums = np.exp(-lam * low)[None]
    tilted = sums * game.N_F
    for unit in range(a.shape[1]):
        kept, gone = (np.exp(-lam * (x[:, unit] - least[:, unit])) for x in (a, b))
        share = np.arange(unit + 2)[:, None, None] / (unit + 1)
        last, before = np.pad(sums, ((0, 1), (0, 0), (0, 0))), np.pad(sums, ((1, 0), (0, 0), (0, 0)))
        tilt, tilt_before = np.pad(tilted, ((0, 1), (0, 0), (0, 0))), np.pad(tilted, ((1, 0), (0, 0), (0, 0)))
        tilted = (1 - share) * kept * (tilt + A[:, unit] * last) + share * gone * (tilt_before + B[:, unit] * before)
        sums = (1 - share) * kept * last + share * gone * before
    return (weights * tilted).sum(axis=1).mean(axis=1)


def moments_by_size(
    a: Float[np.ndarray, "unit"], b: Float[np.ndarray, "unit"]
) -> tuple[Float[np.ndarray, "size"], Float[np.ndarray, "size"]]:
    """E_s[H_S] and Var_s(H_S), H_S = Σ_i a_i 1{i ∉ S} + b_i 1{i ∈ S}, for s = 0 … n removed units."""
    # Centred at half way, so that the second moment is not much larger than the variance.
    middle = (a + b) / 2
    first, second = np.zeros(1), np.zeros(1)
    for unit, (kept, gone) in enumerate(zip(a - middle, b - middle, strict=True)):
        share = np.arange(unit + 2) / (unit + 1)
        (one, two), (one_before, two_before) = ((np.pad(first, pad), np.pad(second, pad)) for pad in ((0, 1), (1, 0)))
        second = (1 - share) * (two + 2 * kept * one + kept**2) + share * (two_before + 2 * gone * one_before + gone**2)
        first = (1 - share) * (one + kept) + share * (one_before + gone)
    return first + middle.sum(), second - first**2
