"""Synthetic activations whose features are known: rows that are sums of sparse features with fixed directions.

    data = SyntheticData(SMALL)
    rows = data.chunk(0)                          # to train on
    activations, rows = data.sample(1_000)        # with the activation of every feature, to judge by

Reference: Chanin & Garriga-Alonso, SynthSAEBench, arXiv:2602.14687, as SAELens 6.54 generates it. A row is
Σ_f a_f d_f + b. Feature f is active where a Gaussian with low-rank correlation exceeds the threshold of its firing
probability, with activation max(0, N(μ_f, σ_f²)). The first features form trees. A child can be active only where its
parent is; of several active siblings one is chosen at random; its activation is multiplied by the parent's / μ_parent.
Differs from SAELens: only children of active parents are sampled, and only active directions are added. The
distribution is the same, with a third of the random numbers and no product of matrices; rows are exact to single
precision.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from heedful.errors import BadInput
from heedful.features.source import KnownSource

PORTION = 8_192
"""Rows that are generated at once; a part of the definition of the data, for random numbers are drawn in this order."""


@final
@dataclass(frozen=True)
class SyntheticFeatures:
    """Which features there are. The default is SynthSAEBench-16k as published (bias 0.5), with our own random numbers.

    Features are ordered by their firing probability, highest first.
    """

    n_features: int = 16_384
    d_e: int = 768
    exponent: float = 0.5
    most_often: float = 0.4
    least_often: float = 5e-4
    n_roots: int = 128
    n_children: int = 4
    depth: int = 3
    rank: int = 25
    correlation: float = 0.1
    """The standard deviation of a loading of the copula: two features correlate by about √rank times its square."""
    first_mean: float = 5.0
    last_mean: float = 4.0
    mean_deviation: float = 0.5
    spread_of_deviations: float = 0.5
    bias: float = 0.5
    n_orthogonal_steps: int = 100
    seed: int = 42

    def __post_init__(self) -> None:
        if self.starts[-1] > self.n_features:
            raise BadInput(
                f"{self.n_roots} trees of depth {self.depth} have {self.starts[-1]:,} features; n_features is "
                f"{self.n_features:,}. Use fewer roots."
            )
        if self.rank * self.correlation**2 > 0.5:
            raise BadInput(f"rank × correlation² is {self.rank * self.correlation**2:.2f}; it must be at most 0.5.")

    @property
    def starts(self) -> list[int]:
        """The first feature of every level of the trees, and the first that belongs to no tree."""
        sizes = [self.n_roots * self.n_children**level for level in range(self.depth + 1)]
        return [0, *np.cumsum(sizes).tolist()]

    def probabilities(self) -> Float[np.ndarray, "feature"]:
        """The share of rows in which each feature would be active if trees took nothing away: Zipf's law, rescaled."""
        law = np.arange(1, self.n_features + 1) ** -self.exponent
        share = (law - law[-1]) / (law[0] - law[-1])
        return self.least_often + (self.most_often - self.least_often) * share

    def compensated(self) -> Float[np.ndarray, "feature"]:
        """The probability of drawing a feature given its parent, p / p_parent · (1 + Σ_siblings p / p_parent).

        That is SAELens' approximation, and at most 1. In the standard configuration 30 features of trees are active in
        a row, where `probabilities` add up to 55.
        """
        base, starts = self.probabilities(), self.starts
        drawn = base.copy()
        for level in range(1, self.depth + 1):
            siblings = base[starts[level] : starts[level + 1]].reshape(-1, self.n_children)
            parents = base[starts[level - 1] : starts[level], None]
            others = siblings.sum(axis=1, keepdims=True) - siblings
            drawn[starts[level] : starts[level + 1]] = (siblings / parents * (1 + others / parents)).ravel()
        return np.minimum(drawn, 1.0)

    def copula(self) -> tuple[Float[Tensor, "feature rank"], Float[Tensor, "feature"]]:
        """Loadings and thresholds: a feature is drawn where loadings · common + N(0, 1) > threshold.

        Both are divided by the standard deviation of the feature's own part, which is at least 0.1.
        """
        loadings = self.correlation * self.normal(3, self.n_features, self.rank)
        shared = loadings.square().sum(dim=1, keepdim=True)
        loadings = loadings * (0.99 / shared.clamp(min=0.99)).sqrt()
        own = (1 - loadings.square().sum(dim=1)).sqrt()
        thresholds = sqrt(2) * torch.erfinv(1 - 2 * torch.from_numpy(self.compensated()))
        return loadings / own[:, None], thresholds.float() / own

    def normal(self, stream: int, *shape: int) -> Float[Tensor, "..."]:
        """Normal random numbers that define the features; each kind has its own stream."""
        return torch.randn(shape, generator=_generator("cpu", 2, self.seed, stream))


STANDARD = SyntheticFeatures()
"""SynthSAEBench-16k."""
SMALL = SyntheticFeatures(n_features=512, d_e=64, n_roots=16, depth=2)
"""A small version for the processor: 512 features in 64 dimensions, two thirds of them in 16 trees of 21."""


@final
class Block(NamedTuple):
    """Active features: one entry per row and free feature, or per row and path from a root down its tree."""

    row: Int[Tensor, "entry"]
    feature: Int[Tensor, "entry level"]
    activation: Float[Tensor, "entry level"]
    """0 where the path has ended."""


@final
class SyntheticData(KnownSource):
    """Rows of a synthetic model, from a seed; a chunk depends on the seed, its number and the kind of device alone."""

    def __init__(
        self,
        features: SyntheticFeatures,
        seed: int = 0,
        rows_a_chunk: int = 65_536,
        device: str = "cpu",
    ) -> None:
        self.features, self.seed, self.device = features, seed, device
        self.d_e, self.rows_a_chunk = features.d_e, rows_a_chunk
        self.about = f"{features}, seed {seed}, {rows_a_chunk} rows a chunk, {torch.device(device).type}"
        self.bias = features.bias * F.normalize(features.normal(1, features.d_e), dim=0).to(device)
        self.means = torch.linspace(features.first_mean, features.last_mean, features.n_features).to(device)
        z = features.normal(2, features.n_features)
        self.deviations = (features.mean_deviation + features.spread_of_deviations * z).abs().to(device)
        loadings, thresholds = features.copula()
        self._loadings, self._thresholds = loadings.to(device), thresholds.to(device)

    @property
    def directions(self) -> Float[Tensor, "feature d_e"]:
        """The direction of each feature, of length 1."""
        return directions_of(self.features, self.device)

    def chunk(self, number: int) -> Float[Tensor, "row d_e"]:
        """The rows of a chunk; no two chunks are the same."""
        return torch.cat([rows for _, rows in self._portions(self.rows_a_chunk, 0, self.seed, number)])

    def sample(
        self, n: int, seed: int = 0, number: int = 0
    ) -> tuple[Float[Tensor, "row feature"], Float[Tensor, "row d_e"]]:
        """The activation of every feature in n rows, and the rows. They are in no chunk, whatever the seeds."""
        portions = list(self._portions(n, 1, seed, number))
        return (
            torch.cat([self._dense(blocks, len(rows)) for blocks, rows in portions]),
            torch.cat([rows for _, rows in portions]),
        )

    @torch.no_grad()
    def _portions(self, n: int, *seed: int) -> Iterator[tuple[list[Block], Float[Tensor, "row d_e"]]]:
        rng = _generator(self.device, *seed)
        for first in range(0, n, PORTION):
            size = min(PORTION, n - first)
            common = torch.randn(size, self.features.rank, generator=rng, device=self.device)
            blocks = [
                self._trees(common, rng),
                self._fire(common, self.features.starts[-1], self.features.n_features, rng),
            ]
            yield blocks, self.bias + sum(self._sum(block, size) for block in blocks)

    def _fire(self, common: Float[Tensor, "row rank"], start: int, end: int, rng: torch.Generator) -> Block:
        """Features that have no parent."""
        limit = torch.addmm(self._thresholds[start:end], common, self._loadings[start:end].T, alpha=-1)
        row, feature = (torch.randn(limit.shape, generator=rng, device=self.device) > limit).nonzero().unbind(1)
        feature = feature[:, None] + start
        return Block(row, feature, self._strength(feature, rng))

    def _trees(self, common: Float[Tensor, "row rank"], rng: torch.Generator) -> Block:
        """One path from each active root: at every level one of the active children, as long as there is one."""
        starts, n_children = self.features.starts, self.features.n_children
        row, feature, activation = self._fire(common, 0, starts[1], rng)
        path, activations = [feature], [activation]
        numbers = torch.arange(n_children, device=self.device)
        for level in range(self.features.depth):
            children = starts[level + 1] + n_children * (feature - starts[level]) + numbers
            drawn = torch.einsum("ecr,er->ec", self._loadings[children], common[row])
            drawn += torch.randn(children.shape, generator=rng, device=self.device)
            strength = self._strength(children, rng)
            strength = strength * (drawn > self._thresholds[children]) * (activation > 0)
            score = torch.rand(children.shape, generator=rng, device=self.device)
            winner = torch.where(strength > 0, score, -1.0).argmax(dim=1, keepdim=True)
            activation = strength.gather(1, winner) * activation / self.means[feature]
            feature = children.gather(1, winner)
            path.append(feature)
            activations.append(activation)
        return Block(row, torch.cat(path, dim=1), torch.cat(activations, dim=1))

    def _strength(self, feature: Int[Tensor, "entry part"], rng: torch.Generator) -> Float[Tensor, "entry part"]:
        z = torch.randn(feature.shape, generator=rng, device=self.device)
        return torch.relu(self.means[feature] + self.deviations[feature] * z)

    def _sum(self, block: Block, n: int) -> Float[Tensor, "row d_e"]:
        """Σ_f a_f d_f of every row."""
        firsts = torch.searchsorted(block.row, torch.arange(n, device=self.device)) * block.feature.shape[1]
        return F.embedding_bag(
            block.feature.flatten(),
            self.directions,
            firsts,
            mode="sum",
            per_sample_weights=block.activation.flatten(),
        )

    def _dense(self, blocks: list[Block], n: int) -> Float[Tensor, "row feature"]:
        """The activation of every feature in every row."""
        activations = torch.zeros(n, self.features.n_features, device=self.device)
        for row, feature, activation in blocks:
            activations[row[:, None], feature] = activation
        return activations


@lru_cache(maxsize=2)
def directions_of(features: SyntheticFeatures, device: str) -> Float[Tensor, "feature d_e"]:
    """Nearly orthogonal directions; computed on the processor, so that every device has the same.

    Takes 45 s on two cores for the default.
    """
    vectors = features.normal(0, features.n_features, features.d_e)
    return nearly_orthogonal(vectors, features.n_orthogonal_steps).to(device)


@torch.no_grad()
def nearly_orthogonal(
    vectors: Float[Tensor, "feature d_e"], n_steps: int, learning_rate: float = 3e-4
) -> Float[Tensor, "feature d_e"]:
    """Directions of length 1 after some steps of Adam on Σ_{i≠j} (x_i·x_j)² + n Σ_i (|x_i|² − 1)².

    The gradient, 4 X XᵀX − 4 |x_i|² x_i + 4 n (|x_i|² − 1) x_i, needs no matrix of features × features.
    """
    x = F.normalize(vectors, dim=1)
    optimiser = torch.optim.Adam([x], lr=learning_rate)
    for _ in range(n_steps):
        squares = x.square().sum(dim=1, keepdim=True)
        x.grad = 4 * (x @ (x.T @ x) + (len(x) * (squares - 1) - squares) * x)
        optimiser.step()
    return F.normalize(x, dim=1)


def _generator(device: str, *seed: int) -> torch.Generator:
    """A random generator on the device; three numbers that differ give another stream."""
    return torch.Generator(device).manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
