"""Laws of masks that depend on sizes alone, whose moments are known without a sample."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from heedful.perturb.masks import subsets


@final
@dataclass(frozen=True, eq=False)
class KnownLaw:
    """How much mass each number k of kept units has in a weighted line, 0 … d, and how often it is drawn, 1 … d − 1.

    Sets of one size share its mass equally. `ridge` is the line's penalty, in the units of the mass.
    """

    mass: Float[np.ndarray, "kept"]
    drawn: Float[np.ndarray, "inner"]
    ridge: float

    @staticmethod
    def lime(n_units: int, n_samples: int, kernel_width: float, ridge: float) -> "KnownLaw":
        """LIME's, Eqs. (15) and (16): the whole text once, and n − 1 samples of sizes uniform on 0 … d − 1 kept.

        Drawn in proportion to √(k(d−k)): texts of which half is left say most.
        """
        k = np.arange(n_units + 1)
        distance = 100 * (1 - np.sqrt(k / n_units))
        mass = np.exp(-(distance**2) / (2 * kernel_width**2)) * (n_samples - 1) / n_units
        mass[-1] = 1.0
        return KnownLaw(mass, np.sqrt(k * (n_units - k))[1:-1], ridge)

    @staticmethod
    def shapley(n_units: int) -> "KnownLaw":
        """Lundberg & Lee's, ∝ 1/(k(d−k)); drawn in proportion to its root, as the extremes are many but alike."""
        k = np.arange(1, n_units)
        kernel = 1 / (k * (n_units - k))
        return KnownLaw(np.concatenate([[0.0], kernel / kernel.sum(), [0.0]]), np.sqrt(kernel), 0.0)

    @property
    def n_units(self) -> int:
        return len(self.mass) - 1

    @cached_property
    def mean_size(self) -> float:
        return float(self.mass @ np.arange(self.n_units + 1) / self.mass.sum())

    @cached_property
    def size_spread(self) -> float:
        """Σ m_k (k − k̄)², with the penalty's share: what the common part of a line is divided by."""
        centred = np.arange(self.n_units + 1) - self.mean_size
        return float(self.mass @ centred**2) + self.n_units * self.ridge

    @cached_property
    def inner_spread(self) -> Float[np.ndarray, "kept"]:
        """The variance of a unit's presence among the sets of a size, along directions that sum to zero."""
        k, d = np.arange(self.n_units + 1), self.n_units
        return k * (d - k) / (d * (d - 1))

    @cached_property
    def spread(self) -> float:
        """Σ m_k k(d−k)/(d(d−1)), with the penalty: what the part of a line that sums to zero is divided by."""
        return float(self.mass @ self.inner_spread) + self.ridge

    @cached_property
    def weight(self) -> Float[np.ndarray, "kept"]:
        """How much a drawn mask of a size stands for: its mass over its chance."""
        weight = np.zeros(self.n_units + 1)
        weight[1:-1] = self.mass[1:-1] / (self.drawn / self.drawn.sum())
        return weight

    def draw(self, n_pairs: int, rng: np.random.Generator) -> Bool[np.ndarray, "pair both unit"]:
        """Masks, each with its complement."""
        steps = np.cumsum(self.drawn) / self.drawn.sum()
        sizes = 1 + np.minimum(np.searchsorted(steps, rng.random(n_pairs)), len(steps) - 1)
        keep = subsets(self.n_units, sizes, rng)
        return np.stack([keep, ~keep], axis=1)
