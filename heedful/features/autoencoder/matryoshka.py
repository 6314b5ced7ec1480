"""Matryoshka: nested dictionaries, of which the first features alone must reconstruct the row too."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput
from heedful.features.autoencoder import Autoencoder, Code, Directions, Rule, Weights, check_k, decode, pre_activations
from heedful.features.autoencoder.batchtopk import largest_of_batch

_REMEMBERED = 0.99
"""The share of the old frequency in the tracked one."""


@final
@dataclass(frozen=True)
class Matryoshka(Autoencoder):
    """BatchTopK whose first features must reconstruct the row alone, at several widths, so that none absorbs another.

        L = Σ_m 1/n Σ ‖x − Σ_{j ≤ m} s_j d_j − b_dec‖²      over the widths m, the whole one among them

    `widths` are the inner widths, by default 1/32, 1/8 and 1/2 of the width. The other defaults go beyond the paper.
    "frequency": the first features are the most frequent ones. "detached": an inner width learns from what the
    narrower ones leave, without changing them. `passes` refines the code: the pre-activation of every feature grows by
    `step` · W_enc,j · (x − x̂), and the batch is chosen again, one step of LISTA. k falls linearly from `first_k` · k.

    Reference: Bussmann et al., *Learning multi-level features with Matryoshka sparse autoencoders*, 2025,
    arXiv:2503.17547; Gregor & LeCun, *Learning fast approximations of sparse coding*, 2010 (LISTA).
    The paper's own: order="index", inner="joint", passes=0, first_k=1.
    """

    name: ClassVar[str] = "matryoshka"
    source: ClassVar[str] = "Bussmann et al., 2025"

    k: float = 32.0
    widths: str = "auto"
    order: Literal["frequency", "index"] = "frequency"
    inner: Literal["detached", "joint"] = "detached"
    passes: int = 1
    step: float = 0.3
    first_k: float = 2.4

    def check(self, width: int) -> None:
        check_k(self.k, width)
        self.inner_widths(width)
        if not 0 <= self.passes <= 10 or not self.first_k >= 1:
            raise BadInput("matryoshka needs 0 to 10 passes, and first_k of at least 1.")

    def inner_widths(self, width: int) -> list[int]:
        """The widths below the whole one."""
        if self.widths == "auto":
            return sorted({width // part for part in (32, 8, 2)} - {0, width})
        try:
            inner = [int(part) for part in self.widths.split(",")]
        except ValueError:
            inner = [0]
        inner = inner[:-1] if inner[-1] == width else inner
        if sorted({*inner}) != inner or not all(0 < m < width for m in inner):
            raise BadInput(
                f"widths must be rising numbers below {width:,}, such as '64,256'; {self.widths!r} was given."
            )
        return inner

    def initial(self, W_dec: Float[Tensor, "feature d_e"]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        return {}, {"frequency": torch.zeros_like(W_dec[:, 0])}

    def encode(self, x: Float[Tensor, "row d_e"], weights: Weights, to: Directions, share: float) -> Code:
        pre, k = pre_activations(self, x, weights, to), self.k_after(share, len(weights.b_enc))
        W_enc = weights.W_enc if to.norms is None else weights.W_enc * to.norms[:, None]
        active, least = largest_of_batch(pre, k)
        smallest = [least]
        for _ in range(self.passes):
            pre = torch.addmm(pre, x - decode(active, weights, to), W_enc.T, alpha=self.step)
            active, least = largest_of_batch(pre, k)
            smallest.append(least)
        parts = self._parts(active, weights, to)
        whole = torch.stack(parts).sum(dim=0) + weights.b_dec
        return Code(pre, active, whole, self._error_of_inner_widths(x, parts[:-1], weights), tuple(smallest))

    def _parts(
        self, active: Float[Tensor, "row feature"], weights: Weights, to: Directions
    ) -> list[Float[Tensor, "row d_e"]]:
        """What the features from one width to the next add to the reconstruction."""
        frequency, W_dec = weights.tracked["frequency"], to.W_dec
        with torch.no_grad():
            counts = (active > 0).view(torch.uint8).sum(dim=0, dtype=torch.int32)
            frequency.lerp_(counts.to(frequency) / len(active), 1 - _REMEMBERED)
        if self.order == "frequency":
            order = frequency.argsort(descending=True, stable=True)
            active, W_dec = active.index_select(1, order), W_dec.index_select(0, order)
        n = [end - start for start, end in pairwise([0, *self.inner_widths(len(W_dec)), len(W_dec)])]
        return [own @ rows for own, rows in zip(active.split(n, dim=1), W_dec.split(n), strict=True)]

    def k_after(self, share: float, width: int) -> float:
        """The number of active features per row after this share of the training."""
        first = min(self.first_k * self.k, float(width))
        return first + (self.k - first) * share

    def _error_of_inner_widths(
        self, x: Float[Tensor, "row d_e"], parts: Sequence[Float[Tensor, "row d_e"]], weights: Weights
    ) -> Float[Tensor, ""]:
        total, rebuilt = x.new_zeros(()), weights.b_dec.expand_as(x)
        for number, part in enumerate(parts):
            if self.inner == "detached" and number:
                rebuilt = rebuilt.detach()
            rebuilt = rebuilt + part
            total = total + (x - rebuilt).square().sum(dim=1).mean()
        return total

    def rule(self, weights: Weights, smallest: Float[Tensor, "_"]) -> Rule:
        return Rule(smallest[:, None].expand(-1, len(weights.b_enc)), step=self.step if self.passes else 0.0)
