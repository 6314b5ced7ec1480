"""Distributions of masks that depend on the number of kept units alone; their moments are known exactly."""

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from heedful.perturb.masks import subsets


@final
@dataclass(frozen=True, eq=False)
class KnownLaw:
    """The mass of each number k of kept units, 0 … d, in a linear surrogate, and how often it is drawn, 1 … d − 1.

    Sets of one size share its mass equally. `ridge` is the penalty of the surrogate, in the units of the mass. A
    penalty `on_intercept` is part of the mass of k = 0, with a value of 0 instead of f(empty).
    """

    mass: Float[np.ndarray, "kept"]
    drawn: Float[np.ndarray, "inner"]
    ridge: float
    on_intercept: float = 0.0

    @staticmethod
    def lime(n_units: int, n_samples: int, kernel_width: float, ridge: float, on_intercept: float = 0.0) -> "KnownLaw":
        """LIME's, Eqs. (15) and (16): the whole text once, and n − 1 samples of sizes uniform on 0 … d − 1 kept.

        Drawn in proportion to √(k(d−k)): texts of which half is kept are the most informative.
        """
        k = np.arange(n_units + 1)
        distance = 100 * (1 - np.sqrt(k / n_units))
        mass = np.exp(-(distance**2) / (2 * kernel_width**2)) * (n_samples - 1) / n_units
        mass[-1] = 1.0
        mass[0] += on_intercept
        return KnownLaw(mass, np.sqrt(k * (n_units - k))[1:-1], ridge, on_intercept)

    @staticmethod
    def shapley(n_units: int) -> "KnownLaw":
        """Lundberg & Lee's, ∝ 1/(k(d−k)); drawn in proportion to its root, since extreme sizes vary little."""
        k = np.arange(1, n_units)
        kernel = 1 / (k * (n_units - k))
        return KnownLaw(np.concatenate([[0.0], kernel / kernel.sum(), [0.0]]), np.sqrt(kernel), 0.0)

    @staticmethod
    def banzhaf(n_units: int) -> "KnownLaw":
        """Every mask equally likely; drawn likewise, but for the empty and the whole text, whose values are known."""
        mass = np.array([comb(n_units, k) / 2**n_units for k in range(n_units + 1)])
        return KnownLaw(mass, np.maximum(mass[1:-1], 1e-300), 0.0)

    @property
    def n_units(self) -> int:
        """The number of units, d."""
        return len(self.mass) - 1

    @cached_property
    def mean_size(self) -> float:
        """The mean number of kept units, k̄."""
        return float(self.mass @ np.arange(self.n_units + 1) / self.mass.sum())

    @cached_property
    def size_spread(self) -> float:
        """Σ m_k (k − k̄)², plus the penalty: the divisor of the mean of the coefficients."""
        centred = np.arange(self.n_units + 1) - self.mean_size
        return float(self.mass @ centred**2) + self.n_units * self.ridge

    @cached_property
    def inner_spread(self) -> Float[np.ndarray, "kept"]:
        """The variance of a unit's presence among the sets of a size, along directions that sum to zero."""
        k, d = np.arange(self.n_units + 1), self.n_units
        return k * (d - k) / (d * (d - 1))

    @cached_property
    def spread(self) -> float:
        """Σ m_k k(d−k)/(d(d−1)), plus the penalty: the divisor of the coefficients' deviations from their mean."""
        return float(self.mass @ self.inner_spread) + self.ridge

    @cached_property
    def weight(self) -> Float[np.ndarray, "kept"]:
        """The importance weight of a drawn mask of each size: its mass over its probability."""
        weight = np.zeros(self.n_units + 1)
        weight[1:-1] = self.mass[1:-1] / (self.drawn / self.drawn.sum())
        return weight

    def draw(self, n_pairs: int, rng: np.random.Generator) -> Bool[np.ndarray, "pair both unit"]:
        """Masks, each with its complement."""
        steps = np.cumsum(self.drawn) / self.drawn.sum()
        sizes = 1 + np.minimum(np.searchsorted(steps, rng.random(n_pairs)), len(steps) - 1)
        keep = subsets(self.n_units, sizes, rng)
        return np.stack([keep, ~keep], axis=1)
