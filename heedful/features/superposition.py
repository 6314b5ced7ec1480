"""Toy superposition: a small model that stores more features than it has dimensions, as rows with known features.

    toy = train_toy(ToySettings(n_features=5, d_e=2, probability=0.1))
    toy.dimensionality                            # 0.4 for each: a pentagon
    rows = ToyRows(toy).chunk(0)                  # hidden activations Wx, to fit a dictionary on

A feature x_i is 0 with probability S = 1 − p, else uniform on [0, 1]. The model has hidden activations h = Wx and
outputs ReLU(Wᵀh + b); its loss is Σ_i I_i (x_i − x̂_i)² with importances I_i. W_i, column i of W, is a row here.

Reference: Elhage et al., *Toy Models of Superposition*, 2022.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from heedful.errors import BadInput
from heedful.family import check_seed
from heedful.features.source import KnownSource
from heedful.models.fingerprint import hash_of
from heedful.models.training_loop import cosine_decay

RECOVERED = 0.98
"""The cosine at which a direction counts as recovered."""
STORED = 0.5
"""A feature is stored if ‖W_i‖ is above this: it tends to 1 for features that are learned and to 0 for the others."""
APART = 2 * RECOVERED**2 - 1
"""The cosine of twice the angle of `RECOVERED`: a direction can then be near one of two features alone."""


@final
@dataclass(frozen=True)
class ToySettings:
    """The features, the size of the model, and its training."""

    n_features: int = 5
    d_e: int = 2
    probability: float = 0.1
    """How often a feature is active, 1 − S."""
    decay: float = 1.0
    """The importance of feature i is decay to the power of i, counted from 0."""
    n_starts: int = 8
    """So many models are trained side by side; the one with the smallest loss is kept."""
    n_steps: int = 3_000
    batch_size: int = 1_024
    learning_rate: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_features", "d_e", "n_starts", "n_steps", "batch_size"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1; {getattr(self, name)} was given.")
        if not (0 < self.probability <= 1 and 0 < self.decay <= 1 and self.learning_rate > 0):
            raise BadInput("probability and decay must be above 0 and at most 1, and learning_rate above 0.")
        check_seed(self.seed)


@final
@dataclass(frozen=True, eq=False)
class ToyModel:
    """A trained toy model, and what its geometry says."""

    settings: ToySettings
    W: Float[Tensor, "feature d_e"]
    b: Float[Tensor, "feature"]
    loss: float
    """The mean loss on fresh rows."""

    @property
    def norms(self) -> Float[Tensor, "feature"]:
        """‖W_i‖, how far each feature is stored."""
        return self.W.norm(dim=1)

    @property
    def dimensionality(self) -> Float[Tensor, "feature"]:
        """D_i = ‖W_i‖² / Σ_j (Ŵ_i · W_j)², the share of a dimension that a feature has; 0 where W_i is 0."""
        shared = (F.normalize(self.W, dim=1) @ self.W.T).square().sum(dim=1)
        return (self.W.square().sum(dim=1) / shared).nan_to_num(0.0)

    @property
    def squares_per_dimension(self) -> float:
        """‖W‖² / d_e, the source's number of features per dimension; above the true one where norms are above 1."""
        return float(self.W.square().sum()) / self.settings.d_e

    @property
    def stored(self) -> Bool[Tensor, "feature"]:
        """Whether ‖W_i‖ is nearer to 1 than to 0."""
        return self.norms > STORED

    @property
    def recoverable(self) -> Bool[Tensor, "feature"]:
        """Whether sparsity determines the feature's direction. Stated before any dictionary is fitted.

        A row with one active feature lies on that feature's ray. If such rows are frequent, directions that explain
        each with one activation are unique, unless two features share a ray (Hillar & Sommer, 2015, arXiv:1106.3616,
        with one active feature and activations ≥ 0; with noise and more directions than features: Garfinkle & Hillar,
        arXiv:1606.06997). So a feature must be stored; be alone among the stored ones in at least half of the rows in
        which it is active, (1 − p)^(n − 1) ≥ 1/2; and have no other stored feature nearer than `APART`.
        """
        alone = (1 - self.settings.probability) ** (int(self.stored.sum()) - 1)
        return self.stored & (self.nearest <= APART) & (alone >= 0.5)

    @property
    def nearest(self) -> Float[Tensor, "feature"]:
        """The largest cosine with another stored feature; −1 if there is none."""
        directions = F.normalize(self.W, dim=1)
        cosines = (directions @ directions.T).fill_diagonal_(-1.0)
        return cosines.masked_fill(~self.stored, -1.0).amax(dim=1)


def train_toy(settings: ToySettings) -> ToyModel:
    """Trains toy models side by side with Adam on fresh rows, from Glorot's normal weights, and keeps the best."""
    n, d_e, n_starts = settings.n_features, settings.d_e, settings.n_starts
    rng = torch.Generator().manual_seed(settings.seed)
    W = (torch.randn(n_starts, n, d_e, generator=rng) * (2 / (n + d_e)) ** 0.5).requires_grad_()
    b = torch.zeros(n_starts, 1, n, requires_grad=True)
    importance = settings.decay ** torch.arange(n)
    optimiser = torch.optim.Adam([W, b], lr=settings.learning_rate)

    def losses(n_rows: int) -> Float[Tensor, "start"]:
        x = draw_features(settings, n_rows, rng)
        outputs = torch.relu(x @ W @ W.mT + b)
        return (importance * (x - outputs).square()).sum(dim=2).mean(dim=1)

    for step in range(settings.n_steps):
        optimiser.param_groups[0]["lr"] = settings.learning_rate * cosine_decay(step, settings.n_steps)
        optimiser.zero_grad()
        losses(settings.batch_size).sum().backward()
        optimiser.step()
    with torch.no_grad():
        measured = losses(65_536)
    best = int(measured.argmin())
    return ToyModel(settings, W[best].detach(), b[best, 0].detach(), float(measured[best]))


def draw_features(settings: ToySettings, n_rows: int, rng: torch.Generator) -> Float[Tensor, "row feature"]:
    """Rows of features: each is 0 with probability 1 − p, else uniform on [0, 1]."""
    active, size = torch.rand(2, n_rows, settings.n_features, generator=rng)
    return torch.where(active < settings.probability, size, 0.0)


@final
class ToyRows(KnownSource):
    """The hidden activations of a toy model, Σ_i x_i W_i; the activation of a feature is x_i ‖W_i‖."""

    def __init__(self, toy: ToyModel, seed: int = 0, rows_a_chunk: int = 65_536) -> None:
        self.toy, self.seed, self.d_e, self.rows_a_chunk = toy, seed, toy.settings.d_e, rows_a_chunk
        self.about = f"{toy.settings} {hash_of(toy.W)}, seed {seed}, {rows_a_chunk} rows a chunk"

    @property
    def directions(self) -> Float[Tensor, "feature d_e"]:
        """The direction of each feature, also of one that is hardly stored."""
        return F.normalize(self.toy.W, dim=1)

    def chunk(self, number: int) -> Float[Tensor, "row d_e"]:
        """The hidden activations of a chunk; no two chunks are the same."""
        return self._drawn(self.rows_a_chunk, 0, self.seed, number) @ self.toy.W

    def sample(
        self, n: int, seed: int = 0, number: int = 0
    ) -> tuple[Float[Tensor, "row feature"], Float[Tensor, "row d_e"]]:
        """The activation of every feature in n rows, and the rows. They are in no chunk, whatever the seeds."""
        x = self._drawn(n, 1, seed, number)
        return x * self.toy.norms, x @ self.toy.W

    def _drawn(self, n: int, *seed: int) -> Float[Tensor, "row feature"]:
        rng = torch.Generator().manual_seed(int(np.random.SeedSequence(seed).generate_state(1)[0]))
        return draw_features(self.toy.settings, n, rng)
