"""BatchTopK: the largest pre-activations of a whole batch, k per row on average."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.features.autoencoder import Autoencoder, Code, Directions, Rule, Weights, check_k, decode, pre_activations

_CROWDED = 8
"""On a GPU so many times k candidates are taken from a row; should more be active, the threshold is a little low."""


@final
@dataclass(frozen=True)
class BatchTopK(Autoencoder):
    """The k · n largest pre-activations of a batch of n rows, if they are above 0; a row may have more or fewer than k.

    Afterwards a feature is active above one threshold: the mean of the smallest activation that a batch keeps.

    Reference: Bussmann et al., *BatchTopK sparse autoencoders*, 2024, arXiv:2412.06410.
    """

    name: ClassVar[str] = "batchtopk"
    source: ClassVar[str] = "Bussmann et al., 2024"

    k: float = 32.0

    def check(self, width: int) -> None:
        check_k(self.k, width)

    def initial(self, W_dec: Float[Tensor, "feature d_e"]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:  # noqa: ARG002
        return {}, {}

    def encode(self, x: Float[Tensor, "row d_e"], weights: Weights, to: Directions, share: float) -> Code:  # noqa: ARG002
        pre = pre_activations(self, x, weights, to)
        active, smallest = largest_of_batch(pre, self.k)
        return Code(pre, active, decode(active, weights, to), smallest=(smallest,))

    def rule(self, weights: Weights, smallest: Float[Tensor, "_"]) -> Rule:
        return Rule(smallest[:, None].expand(-1, len(weights.b_enc)))


def largest_of_batch(
    pre: Float[Tensor, "row feature"], k: float
) -> tuple[Float[Tensor, "row feature"], Float[Tensor, ""]]:
    """The k · n largest values of n rows together where they are above 0, and zeros; and the smallest that is kept.

    Values that equal the smallest are all kept. Where none is above 0 the smallest is infinite.
    """
    n = max(1, int(k * len(pre)))
    if pre.device.type == "cpu":
        return _largest_on_cpu(pre, n)
    above = pre.relu()
    candidates, most = above.detach(), max(1, int(_CROWDED * k))
    if most < pre.shape[1]:
        # A GPU sorts the whole of a long list, which takes longer than the rest of the step.
        candidates = candidates.topk(most, dim=1, sorted=False).values
    least = candidates.flatten().topk(n, sorted=False).values.min()
    active = torch.where((above >= least) & (above > 0), above, 0.0)
    return active, torch.where(active > 0, active, torch.inf).detach().min()


def _largest_on_cpu(
    pre: Float[Tensor, "row feature"], n: int
) -> tuple[Float[Tensor, "row feature"], Float[Tensor, ""]]:
    # torch's own topk and where take longer than the rest of the step.
    least = np.partition(pre.detach().numpy(), -n, axis=None)[-n]
    below = np.nextafter(least, -least) if least > 0 else 0.0
    active = torch.nn.functional.threshold(pre, float(below), 0.0)
    kept = active.detach()
    smallest = kept.new_tensor(least) if least > 0 else torch.where(kept > 0, kept, torch.inf).min()
    return active, smallest
