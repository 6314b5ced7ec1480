"""The contract of sparse autoencoders: what every kind computes, and what a kind adds.

    pre_j = ‖W_dec,j‖ (W_enc,j · (x − b_pre) + b_enc,j)      pre-activation of feature j
    s_j   = activation(pre)_j ≥ 0                            the lecture's a_j ‖W_dec,j‖
    x̂     = Σ_j s_j W_dec,j / ‖W_dec,j‖ + b_dec              reconstruction
    L     = 1/n Σ ‖x − x̂‖² + penalty + revival               loss over n rows

W_dec,j is a row here, the lecture's column W_dec[:, j]. b_pre is b_dec in the kinds that centre, else 0.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from heedful import family
from heedful.errors import BadInput


@final
@dataclass(frozen=True, eq=False)
class Weights:
    """What is trained and what is tracked during training; both are resumed."""

    W_enc: Float[Tensor, "feature d_e"]
    b_enc: Float[Tensor, "feature"]
    W_dec: Float[Tensor, "feature d_e"]
    b_dec: Float[Tensor, "d_e"]
    quiet: Float[Tensor, "feature"]
    """The number of rows since each feature was active."""
    trained: Mapping[str, Tensor] = field(default_factory=dict)
    """What else a kind trains, such as thresholds."""
    tracked: Mapping[str, Tensor] = field(default_factory=dict)
    """What a kind updates at every step without a gradient, such as thresholds of a batch."""

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Everything that the optimiser changes."""
        return {"W_enc": self.W_enc, "b_enc": self.b_enc, "W_dec": self.W_dec, "b_dec": self.b_dec, **self.trained}

    @property
    def everything(self) -> dict[str, Tensor]:
        """Everything that a resumed run needs."""
        return {**self.parameters, "quiet": self.quiet, **self.tracked}


@final
class Code(NamedTuple):
    """What a kind computes for some rows."""

    pre: Float[Tensor, "row feature"]
    active: Float[Tensor, "row feature"]
    reconstruction: Float[Tensor, "row d_e"]
    penalty: Float[Tensor, ""] | None = None
    """What the kind adds to the reconstruction error."""
    smallest: tuple[Float[Tensor, ""], ...] = ()
    """The smallest activation that each pass keeps, where the batch chooses; infinite where none is above 0."""


@final
class Directions(NamedTuple):
    """The decoder's rows as a training step uses them, at length 1, and their lengths; None where kept at 1."""

    W_dec: Float[Tensor, "feature d_e"]
    norms: Float[Tensor, "feature"] | None


@final
@dataclass(frozen=True, eq=False)
class Rule:
    """How pre-activations become activations once training is over: row by row, whatever the batch.

    A feature is active above its threshold. With k, only the k largest are. With several passes each feature's
    pre-activation grows by `step` times what the rest of the row gives it, and the next pass has its own thresholds.
    """

    thresholds: Float[Tensor, "pass feature"]
    k: int | None = None
    step: float = 0.0


@dataclass(frozen=True)
class Autoencoder(ABC):
    """A kind of sparse autoencoder; its fields are its settings."""

    name: ClassVar[str]
    source: ClassVar[str]
    centres: ClassVar[bool] = True
    """Whether b_dec is subtracted before encoding."""

    norms: Literal["unit", "free"] = "unit"
    """Whether the decoder's rows are kept at length 1, or free, with activations that are multiplied by it."""
    revive: float = 1.0
    """The weight of the loss that lets dead features learn what the others leave (Gao et al., 2024, Appendix A.2)."""

    @abstractmethod
    def initial(self, W_dec: Float[Tensor, "feature d_e"]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """What else is trained, and what else is tracked, at the beginning; on the device of `W_dec`."""

    @abstractmethod
    def encode(self, x: Float[Tensor, "row d_e"], weights: Weights, to: Directions, share: float) -> Code:
        """Pre-activations, activations, reconstruction and penalty after this share of the training; it tracks, too."""

    @abstractmethod
    def rule(self, weights: Weights, smallest: Float[Tensor, "_"]) -> Rule:
        """How a finished dictionary turns pre-activations into activations; `smallest` is that of `smallest_kept`."""

    def __post_init__(self) -> None:
        if not 0 <= self.revive < inf:
            raise BadInput(f"revive must be a number of at least 0; {self.revive} was given.")

    @abstractmethod
    def check(self, width: int) -> None:
        """Refuses settings that do not fit the number of features."""

    def directions(self, weights: Weights) -> Directions:
        """The decoder's rows. Where they are kept at 1, their gradient has no part along them (Gao et al., 2024)."""
        if self.norms == "unit":
            return Directions(normalize(weights.W_dec, dim=1), None)
        norms = weights.W_dec.norm(dim=1)
        return Directions(weights.W_dec / norms[:, None], norms)

    def loss(
        self, x: Float[Tensor, "row d_e"], weights: Weights, share: float, dead: Int[Tensor, "dead"] | None = None
    ) -> tuple[Float[Tensor, ""], Code]:
        """The loss of some rows with the code it is computed from; `dead` are the numbers of features to revive."""
        to = self.directions(weights)
        code = self.encode(x, weights, to, share)
        error = (x - code.reconstruction).square().sum(dim=1).mean()
        total = error if code.penalty is None else error + code.penalty
        if dead is not None and self.revive:
            total = total + self.revive * _revival(x - code.reconstruction.detach(), code.pre, to, dead)
        with torch.no_grad():
            weights.quiet.add_(len(x)).masked_fill_(code.active.amax(dim=0) > 0, 0)
        return total, code


@torch.no_grad()
def smallest_kept(kind: Autoencoder, weights: Weights, batches: Iterable[Float[Tensor, "_ d_e"]]) -> Float[Tensor, "_"]:
    """The mean over batches of the smallest activation that each pass keeps; empty where the batch does not choose.

    They are the thresholds after training (Bussmann et al., 2024, Section 3), measured with the final weights: a mean
    that is tracked during training, as SAELens does, is behind and keeps too many features after a short one.
    """
    to, each = kind.directions(weights), []
    for x in batches:
        smallest = kind.encode(x, weights, to, 1.0).smallest
        if not smallest:
            return x.new_zeros(0)
        each.append(torch.stack(smallest).double())
    values = torch.stack(each)
    n = values.isfinite().sum(dim=0)
    return (torch.where(values.isfinite(), values, 0.0).sum(dim=0) / n.clamp(min=1)).to(weights.b_enc)


def pre_activations(
    kind: Autoencoder, x: Float[Tensor, "row d_e"], weights: Weights, to: Directions
) -> Float[Tensor, "row feature"]:
    """‖W_dec,j‖ (W_enc,j · (x − b_pre) + b_enc,j)."""
    W_enc, b_enc = weights.W_enc, weights.b_enc
    if kind.centres:
        # The added zeros carry b_dec's gradient: through x it would take one more product of matrices.
        centre = weights.b_dec.detach()
        x, b_enc = x - centre, b_enc + W_enc.detach() @ (centre - weights.b_dec)
    if to.norms is not None:
        W_enc, b_enc = W_enc * to.norms[:, None], b_enc * to.norms
    return torch.addmm(b_enc, x, W_enc.T)


def decode(active: Float[Tensor, "row feature"], weights: Weights, to: Directions) -> Float[Tensor, "row d_e"]:
    """Σ_j s_j W_dec,j / ‖W_dec,j‖ + b_dec."""
    return torch.addmm(weights.b_dec, active, to.W_dec)


def largest_places(values: Float[Tensor, "row n"], k: int) -> Int[Tensor, "row k"]:
    """Where the k largest values of every row are, in any order."""
    if values.device.type == "cpu":
        # torch takes four times as long, which is a quarter of a training step.
        return torch.from_numpy(np.argpartition(values.detach().numpy(), -k, axis=1)[:, -k:])
    return values.topk(k, dim=1, sorted=False).indices


def _revival(
    left: Float[Tensor, "row d_e"],
    pre: Float[Tensor, "row feature"],
    to: Directions,
    dead: Int[Tensor, "dead"],
) -> Float[Tensor, ""]:
    """AuxK: the error of the strongest dead features, at most d_e / 2 per row, at what the others leave.

    Differs from the source as SAELens does: it is not divided by the variance, but by d_e / 2 over the number of dead
    features where these are fewer; pre-activations below 0 count as they are.
    """
    most, active = max(1, left.shape[1] // 2), pre.index_select(1, dead)
    if len(dead) > most:
        places = largest_places(active, most)
        active = torch.zeros_like(active).scatter(1, places, active.gather(1, places))
    rebuilt = active @ to.W_dec.index_select(0, dead)
    return min(1.0, len(dead) / most) * (rebuilt - left).square().sum(dim=1).mean()


def check_k(k: int | float, width: int) -> None:
    """Refuses a number of active features that no row can have."""
    if not 0 < k <= width:
        raise BadInput(f"k must be above 0 and at most the width, {width:,}; {k:g} was given.")


def kinds() -> dict[str, type[Autoencoder]]:
    """Every kind of sparse autoencoder, by its catalogue name."""
    return dict(family.members(__name__, Autoencoder))
