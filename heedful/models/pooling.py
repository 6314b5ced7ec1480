"""Models whose output is softmax-attention pooling over tokens that do not attend to each other."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Absence, Document
from heedful.models import Attending, Offer
from heedful.models.budget import PASS_MEMORY
from heedful.target import Target


@final
@dataclass(frozen=True)
class Pooling:
    """Scores and values of every position, kept or removed: f = 1/K Σ_i Σ_t softmax(s_i)_t w_{i,t} of each document.

    Positions after a document's tokens are never removed. One with score −∞ gets no attention.
    """

    s: Float[Tensor, "batch head position"]
    w: Float[Tensor, "batch head position"]
    s_gone: Float[Tensor, "batch head position"]
    w_gone: Float[Tensor, "batch head position"]

    def values(self, index: int, keep: Bool[Tensor, "mask token"]) -> Float[Tensor, "mask"]:
        """f of one document on every mask over its tokens.

        Numerator and denominator are linear in the mask: two matrix products.
        """
        s, w, s_gone, w_gone = self.s[index], self.w[index], self.s_gone[index], self.w_gone[index]
        n_heads, n_tokens = len(s), keep.shape[1]
        # Subtracting a constant from every score of a head changes nothing and keeps exp from overflowing.
        largest = torch.maximum(s.amax(dim=1), s_gone.amax(dim=1))[:, None]
        g, g_gone = (s - largest).exp(), (s_gone - largest).exp()
        kept, gone = torch.cat([g, g * w]).T, torch.cat([g_gone, g_gone * w_gone]).T
        # Not gone.sum() + mask @ (kept − gone): with very unequal attention the difference would lose digits.
        sums = keep.to(g) @ kept[:n_tokens] + (~keep).to(g) @ gone[:n_tokens] + kept[n_tokens:].sum(dim=0)
        D, N = sums.split(n_heads, dim=1)
        return (N / D).mean(dim=1)


Pool = Callable[[Sequence[Document], Float[np.ndarray, "batch class"], Absence], Pooling]
"""`PoolingModel.pooling`, or a function that caches its results."""
Evaluator = Callable[[Bool[np.ndarray, "mask token"]], Float[np.ndarray, "mask"]]
"""A linear target of one document at any masks; everything that does not depend on the masks is precomputed."""


class PoolingModel(Attending):
    """A model whose pooled scores and values are known: enough for exact LIME and Shapley values, and for any mask."""

    provides: ClassVar[frozenset[Offer]] = frozenset({"pooling"})

    @abstractmethod
    def pooling(
        self, documents: Sequence[Document], targets: Float[np.ndarray, "batch class"], absence: Absence
    ) -> Pooling:
        """Scores and values that attention pools in each document, for its target, in double precision."""

    @abstractmethod
    def evaluator(
        self, document: Document, target: Float[np.ndarray, "class"], absence: Absence, pool: Pool
    ) -> Evaluator:
        """The target of one document as a function of masks; `pool` computes the pooled scores and values."""

    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        at_once: int | None = None,  # noqa: ARG002
    ) -> Float[np.ndarray, "mask"]:
        """The target on every mask without a forward pass, in double precision."""

        def evaluate(row: Float[np.ndarray, "class"]) -> Float[np.ndarray, "mask"]:
            return self.evaluator(document, row, absence, self.pooling)(keep)

        return linear_values(target, len(self.classes), evaluate)

    def masks_at_once(self, document: Document, memory: int | None) -> int:
        """The number of masks that fit into the memory limit."""
        return max(1, (PASS_MEMORY if memory is None else memory) // (32 * len(document.ids)))


def linear_values(
    target: Target, n_classes: int, evaluate: Callable[[Float[np.ndarray, "class"]], Float[np.ndarray, "mask"]]
) -> Float[np.ndarray, "mask"]:
    """The target from functions that are linear in the outputs: its own row, or every class for a probability."""
    if target.is_linear:
        return evaluate(target.weights(n_classes))
    return target.of(np.stack([evaluate(row) for row in np.eye(n_classes)], axis=-1))


def in_portions(values: Callable[[Bool[Tensor, "_ token"]], Float[Tensor, "_"]], device: torch.device) -> Evaluator:
    """A function of masks that evaluates a million tokens at a time, so that memory does not grow with the masks."""

    def evaluate(keep: Bool[np.ndarray, "mask token"]) -> Float[np.ndarray, "mask"]:
        portions = torch.from_numpy(keep).to(device).split(max(1, 1_000_000 // keep.shape[1]))
        return torch.cat([values(portion) for portion in portions]).cpu().numpy()

    return evaluate
