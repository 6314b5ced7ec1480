"""JumpReLU: every feature has a threshold of its own, which is trained."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput
from heedful.features.autoencoder import Autoencoder, Code, Directions, Rule, Weights, check_k, decode, pre_activations


@final
@dataclass(frozen=True)
class JumpRelu(Autoencoder):
    """a_j = z_j where z_j > θ_j, else 0; the thresholds θ are trained, and the number of active features is penalised.

    The gradient of the step at θ is estimated from a window of width `bandwidth` (a rectangle). With `penalty_of`
    "target" the penalty is λ · 2/k · (L0 − k)², after Gemma Scope 2, so that k features are active on average; with
    "count" it is λ · L0, the paper's. λ is `sparsity`; it rises linearly from 0 over the first `ramp` of the training.

    Reference: Rajamanoharan et al., *Jumping ahead*, 2024, arXiv:2407.14435.
    Differs from the paper: θ itself is trained, not its logarithm, and kept at 0 or above; dead features are revived.
    """

    name: ClassVar[str] = "jumprelu"
    source: ClassVar[str] = "Rajamanoharan et al., 2024"

    k: float = 32.0
    penalty_of: Literal["target", "count"] = "target"
    sparsity: float = 1.0
    ramp: float = 0.05
    bandwidth: float = 0.05
    first_threshold: float = 0.01

    def check(self, width: int) -> None:
        check_k(self.k, width)
        if not (self.sparsity >= 0 and self.bandwidth > 0 and self.first_threshold >= 0 and 0 <= self.ramp <= 1):
            raise BadInput(
                "jumprelu needs sparsity and first_threshold of at least 0, a bandwidth above 0 and ramp from 0 to 1."
            )

    def initial(self, W_dec: Float[Tensor, "feature d_e"]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return {"threshold": torch.full_like(W_dec[:, 0], self.first_threshold)}, {}

    def encode(self, x: Float[Tensor, "row d_e"], weights: Weights, to: Directions, share: float) -> Code:
        threshold = weights.trained["threshold"]
        with torch.no_grad():
            # In place and without a gradient: a threshold clamped in the graph could never rise again.
            threshold.clamp_(min=0.0)
        z = pre_activations(self, x, weights, Directions(to.W_dec, None))
        active: Tensor = _Jump.apply(z, threshold, self.bandwidth)  # type: ignore[assignment]
        pre, active = (z, active) if to.norms is None else (z * to.norms, active * to.norms)
        n_active: Tensor = _Count.apply(z.detach(), threshold, self.bandwidth)  # type: ignore[assignment]
        each = n_active if self.penalty_of == "count" else 2 / self.k * (n_active - self.k).square()
        scale = min(1.0, share / self.ramp) if self.ramp else 1.0
        return Code(pre, active, decode(active, weights, to), self.sparsity * scale * each.mean())

    def rule(self, weights: Weights, smallest: Float[Tensor, "_"]) -> Rule:  # noqa: ARG002
        norms = 1.0 if self.norms == "unit" else weights.W_dec.norm(dim=1)
        return Rule((weights.trained["threshold"].clamp(min=0.0) * norms).detach()[None])


def _window(z: Tensor, threshold: Tensor, bandwidth: float) -> Tensor:
    """1 inside of the rectangle around the threshold, else 0."""
    return ((z > threshold - bandwidth / 2) & (z < threshold + bandwidth / 2)).to(z)


@final
class _Jump(torch.autograd.Function):
    """z where z > θ; ∂/∂θ is −θ times the window."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, threshold: Tensor, bandwidth: float) -> Tensor:
        # In place: every table of this size that is made costs as much as the arithmetic.
        active = (z > threshold).to(z).mul_(z)
        ctx.save_for_backward(z, threshold, active)
        ctx.bandwidth = bandwidth
        return active

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,) = gradients
        z, threshold, active = ctx.saved_tensors
        slope = _window(z, threshold, ctx.bandwidth).mul_(gradient).sum(dim=0)
        return torch.ops.aten.threshold_backward(gradient, active, 0.0), -threshold / ctx.bandwidth * slope, None


@final
class _Count(torch.autograd.Function):
    """The number of features with z > θ in each row; ∂/∂θ is minus the window, and there is no gradient to z."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, threshold: Tensor, bandwidth: float) -> Tensor:
        ctx.save_for_backward(z, threshold)
        ctx.bandwidth = bandwidth
        return (z > threshold).view(torch.uint8).sum(dim=1, dtype=torch.int32).to(z)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,) = gradients
        z, threshold = ctx.saved_tensors
        return None, -gradient @ _window(z, threshold, ctx.bandwidth) / ctx.bandwidth, None
