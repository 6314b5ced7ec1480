"""TopK: the k largest pre-activations of every row."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.features.autoencoder import (
    Autoencoder,
    Code,
    Directions,
    Rule,
    Weights,
    check_k,
    decode,
    largest_places,
    pre_activations,
)


@final
@dataclass(frozen=True)
class RowTopK(Autoencoder):
    """The k largest pre-activations of every row, if they are above 0; there is no penalty.

    Reference: Gao et al., *Scaling and evaluating sparse autoencoders*, 2024, arXiv:2406.04093.
    """

    name: ClassVar[str] = "topk"
    source: ClassVar[str] = "Gao et al., 2024"

    k: int = 32

    def check(self, width: int) -> None:
        check_k(self.k, width)

    def initial(self, W_dec: Float[Tensor, "feature d_e"]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:  # noqa: ARG002
        return {}, {}

    def encode(self, x: Float[Tensor, "row d_e"], weights: Weights, to: Directions, share: float) -> Code:  # noqa: ARG002
        pre = pre_activations(self, x, weights, to)
        active = largest_of_rows(pre, self.k)
        return Code(pre, active, decode(active, weights, to))

    def rule(self, weights: Weights, smallest: Float[Tensor, "_"]) -> Rule:  # noqa: ARG002
        return Rule(torch.zeros_like(weights.b_enc)[None], self.k)


def largest_of_rows(pre: Float[Tensor, "row feature"], k: int) -> Float[Tensor, "row feature"]:
    """The k largest values of every row where they are above 0, and zeros."""
    places = largest_places(pre, k)
    return torch.zeros_like(pre).scatter(1, places, pre.gather(1, places).relu())
