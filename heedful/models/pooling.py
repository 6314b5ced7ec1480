"""Models whose answer is softmax-attention pooling over tokens that do not see each other."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Absence, Document
from heedful.models import Model
from heedful.models.budget import PASS_MEMORY
from heedful.target import Target


@final
@dataclass(frozen=True)
class Pooling:
    """f = 1/K Σ_i Σ_t softmax(s_i)_t w_{i,t} of each document: scores and values of every position, kept or removed.

    A position past a document's tokens is never removed. One with score −∞ takes no attention.
    """

    s: Float[Tensor, "batch head position"]
    w: Float[Tensor, "batch head position"]
    s_gone: Float[Tensor, "batch head position"]
    w_gone: Float[Tensor, "batch head position"]

    def answers(self, index: int, keep: Bool[Tensor, "mask token"]) -> Float[Tensor, "mask"]:
        """f of one document for every way of keeping its tokens.

        Numerator and denominator are linear in the mask: two matrix products.
        """
        s, w, s_gone, w_gone = self.s[index], self.w[index], self.s_gone[index], self.w_gone[index]
        n_heads, n_tokens = len(s), keep.shape[1]
        # A constant taken from every score of a head cancels, and without it exp could overflow.
        largest = torch.maximum(s.amax(dim=1), s_gone.amax(dim=1))[:, None]
        g, g_gone = (s - largest).exp(), (s_gone - largest).exp()
        there, gone = torch.cat([g, g * w]).T, torch.cat([g_gone, g_gone * w_gone]).T
        # Not gone.sum() + kept @ (there − gone): with very unequal attention the difference would lose its digits.
        sums = keep.to(g) @ there[:n_tokens] + (~keep).to(g) @ gone[:n_tokens] + there[n_tokens:].sum(dim=0)
        D, N = sums.split(n_heads, dim=1)
        return (N / D).mean(dim=1)


class PoolingModel(Model):
    """A model that can say what its attention pools: enough for exact LIME and Shapley values, and for any mask."""

    @abstractmethod
    def pooling(
        self, documents: Sequence[Document], targets: Float[np.ndarray, "batch class"], absence: Absence
    ) -> Pooling:
        """What attention pools in each document, for its target, in double precision."""

    def masks_at_once(self, document: Document, memory: int | None) -> int:
        return max(1, (PASS_MEMORY if memory is None else memory) // (32 * len(document.ids)))


@torch.no_grad()
def pooled_answers(
    model: PoolingModel,
    document: Document,
    target: Target,
    keep: Bool[np.ndarray, "mask token"],
    absence: Absence,
) -> Float[np.ndarray, "mask"]:
    """The target for every way of keeping tokens, from what attention pools."""

    def pooled(row: Float[np.ndarray, "class"]) -> Float[np.ndarray, "mask"]:
        pooling = model.pooling([document], row[None], absence)
        return in_portions(lambda some: pooling.answers(0, some), torch.from_numpy(keep).to(pooling.s.device))

    return linear_answers(target, len(model.classes), pooled)


def linear_answers(
    target: Target, n_classes: int, answer: Callable[[Float[np.ndarray, "class"]], Float[np.ndarray, "mask"]]
) -> Float[np.ndarray, "mask"]:
    """The target from answers that are linear in the logits: one of them, or for a log-probability every class's."""
    if target.scale == "logit":
        return answer(target.weights(n_classes))
    return target.of(np.stack([answer(row) for row in np.eye(n_classes)], axis=-1))


def in_portions(
    answers: Callable[[Bool[Tensor, "_ token"]], Float[Tensor, "_"]], keep: Bool[Tensor, "mask token"]
) -> Float[np.ndarray, "mask"]:
    """A million tokens at a time keep memory flat in the number of masks."""
    portions = keep.split(max(1, 1_000_000 // keep.shape[1]))
    return torch.cat([answers(portion) for portion in portions]).cpu().numpy()
