"""The random set of words that LIME removes: all sets of a small document, their probabilities, and samples."""

from math import comb

import numpy as np
from jaxtyping import Bool, Float

from heedful.perturb.masks import subsets


def all_kept(n: int) -> Bool[np.ndarray, "subset unit"]:
    """Every subset of n units as kept units, the empty one first."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1


def lime_law(keep: Bool[np.ndarray, "subset unit"]) -> Float[np.ndarray, "subset"]:
    """The probability of each set under LIME: size s uniform on 1 … d, sets of a size equally likely (Section 5.1)."""
    d = keep.shape[1]
    return np.array([0.0 if kept == d else 1 / d / comb(d, kept) for kept in keep.sum(axis=1).tolist()])


def lime_kept(n: int, n_draws: int, rng: np.random.Generator) -> Bool[np.ndarray, "draw unit"]:
    """Kept units of n samples from LIME's distribution."""
    return ~subsets(n, rng.integers(1, n + 1, size=n_draws), rng)


def kept_of_size(n: int, s: int, n_draws: int, rng: np.random.Generator) -> Bool[np.ndarray, "draw unit"]:
    """Kept units of n samples that remove s units each, the distribution P_s of Appendix D."""
    return ~subsets(n, np.full(n_draws, s), rng)
