"""The lecture's sparse autoencoder: ReLU, and a penalty on activations times the length of their directions."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput
from heedful.features.autoencoder import Autoencoder, Code, Directions, Rule, Weights, decode, pre_activations


@final
@dataclass(frozen=True)
class Relu(Autoencoder):
    """ReLU with an L1 penalty, the lecture's autoencoder, Section 9.5.

        a_j(h) = ReLU(W_enc,j · h + b_enc,j)      s(h) = Σ_j a_j(h) W_dec,j + b_dec
        L = 1/n Σ_i [ ‖h_i − s(h_i)‖² + λ Σ_j a_j(h_i) ‖W_dec,j‖ ]

    λ is `sparsity`; it rises linearly from 0 over the first `ramp` of the training. Lengths of directions are free.

    Reference: the lecture; Templeton et al., *Scaling Monosemanticity*, 2024.
    Differs from the lecture: dead features are revived, as in `topk`.
    """

    name: ClassVar[str] = "relu"
    source: ClassVar[str] = "Templeton et al., 2024"
    centres: ClassVar[bool] = False

    norms: Literal["unit", "free"] = "free"
    sparsity: float = 5.0
    ramp: float = 0.05

    def check(self, width: int) -> None:  # noqa: ARG002
        if not self.sparsity >= 0 or not 0 <= self.ramp <= 1:
            raise BadInput("sparsity must be at least 0, and ramp a share from 0 to 1.")

    def initial(self, W_dec: Float[Tensor, "feature d_e"]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:  # noqa: ARG002
        return {}, {}

    def encode(self, x: Float[Tensor, "row d_e"], weights: Weights, to: Directions, share: float) -> Code:
        pre = pre_activations(self, x, weights, to)
        active = pre.relu()
        scale = min(1.0, share / self.ramp) if self.ramp else 1.0
        return Code(pre, active, decode(active, weights, to), scale * self.sparsity * active.sum(dim=1).mean())

    def rule(self, weights: Weights, smallest: Float[Tensor, "_"]) -> Rule:  # noqa: ARG002
        return Rule(torch.zeros_like(weights.b_enc)[None])
