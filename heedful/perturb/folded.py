"""Masks that estimate the effect of every unit best, and the linear surrogate fitted to them: Banzhaf values."""

import numpy as np
import torch
from jaxtyping import Float

from heedful.perturb.hadamard import hadamard_columns, largest_order
from heedful.perturb.masks import Draws
from heedful.perturb.surrogate import Surrogate, no_swap
from heedful.statistics.intervals import student_97_5


def folded_draws(n_units: int, n_samples: int, rng: np.random.Generator) -> Draws:
    """One block of at most `n_samples` masks, in pairs of complements; every mask once if there are no more.

    Masks are the rows of a Hadamard matrix and their complements: a fold-over (Box & Wilson, 1951). No unit's effect is
    aliased with another's, nor with a joint effect of two units. Columns are drawn and their signs flipped at random,
    so that every mask is equally likely and means are unbiased.
    """
    if 2**n_units <= n_samples:
        keep = np.arange(2 ** (n_units - 1))[:, None] >> np.arange(n_units) & 1 == 1
    else:
        order = largest_order(n_samples // 2)
        signs = hadamard_columns(order, rng.permutation(order)[:n_units]) * rng.choice([-1, 1], size=n_units)
        keep = signs[rng.permutation(order)] > 0
    pairs = np.stack([keep, ~keep], axis=1).reshape(-1, n_units)
    return Draws(pairs, np.ones(len(pairs)), len(pairs) if 2**n_units <= n_samples else 0, paired=True)


def fit_banzhaf(draws: Draws, values: Float[np.ndarray, "mask"]) -> Surrogate:
    """Least squares with an intercept on pairs of complements; the coefficients estimate Banzhaf values.

    Joint effects of two units cancel in (f(z) − f(1 − z))/2, which is regressed on z − ½. With N pairs of one block or
    several, the columns that no unit uses show the same aliases as those of the units: the residuals have N − d degrees
    of freedom, and Student's intervals follow. A unit's own column is free of the joint effects of three units that
    include it. The intervals contain them, so they are up to √(1 − 3/d) too wide. NaN if N = d.
    """
    keep, pairs = draws.keep[::2], values.reshape(-1, 2)
    n_pairs, d = keep.shape
    x = torch.from_numpy(keep.copy()).double() - 0.5
    odd, even = torch.from_numpy((pairs[:, 0] - pairs[:, 1]) / 2), torch.from_numpy(pairs.mean(axis=1))
    # The tiny ridge matters only if the user stopped early: whole blocks are orthogonal.
    inverse = torch.linalg.inv(x.T @ x + 1e-12 * n_pairs * torch.eye(d, dtype=x.dtype))
    coefficients = inverse @ (x.T @ odd)
    unexplained, freedom = float((odd - x @ coefficients).square().sum()), n_pairs - d
    spread, around = float(values.var()) * len(values), float((even - even.mean()).square().sum())
    if draws.n_certain:
        variance, half_widths = np.zeros(d), np.zeros(d)
    elif freedom < 1:
        variance = half_widths = np.full(d, np.nan)
    else:
        variance = (inverse.diagonal() * unexplained / freedom).numpy()
        half_widths = student_97_5(float(freedom)) * np.sqrt(variance)
    scores = coefficients.numpy()
    return Surrogate(
        coefficients=scores,
        half_widths=half_widths,
        intercept=float(even.mean() - coefficients.sum() / 2),
        r_squared=1.0 - 2 * (unexplained + around) / spread if spread > 0 else 1.0,
        effective_samples=float(len(values)),
        penalty_shift=0.0,
        top_certainty=no_swap(scores, variance, None) if freedom >= 1 else 0.0,
    )
