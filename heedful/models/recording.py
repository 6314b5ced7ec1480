"""Recordings of attention: the inputs of every attention layer in one forward pass."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document import Document
from heedful.errors import BadInput
from heedful.models import Attending, Differentiable, Offer
from heedful.models.attention_hook import Attended, Listener, still
from heedful.models.budget import PASS_MEMORY

Edit = Callable[[int, Float[Tensor, "batch head query key"]], Float[Tensor, "batch head query key"]]
"""Takes a layer's number and its maps; returns the maps to use instead."""


@final
@dataclass(frozen=True, eq=False)
class Recording:
    """One forward pass: every attention call in the order of execution, and the logits."""

    calls: tuple[Attended, ...]
    logits: Float[Tensor, "batch class"]


class Recordable(Differentiable, Attending):
    """A model whose attention layers can be recorded: q, k, v and mask of every call, by the attention hook."""

    provides: ClassVar[frozenset[Offer]] = frozenset({"layers"})

    network: Any
    """The torch module that computes it."""
    ragged: bool = True
    """Whether texts of different lengths can share a batch."""
    co_attends: bool = False
    """Whether its source attends to the model too."""

    @abstractmethod
    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener receives every attention call and returns its output."""

    @abstractmethod
    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits, such as 1 at [CLS]; rows sum to one."""

    @abstractmethod
    def placed(
        self, documents: Sequence[Document], own: Float[Tensor, "batch _"], source: Float[Tensor, "batch _"] | None
    ) -> Float[Tensor, "batch token"]:
        """Values at the inputs of the tower that is read out, and of its source, in the order of the tokens."""

    @abstractmethod
    def n_sources(self, documents: Sequence[Document]) -> int:
        """The number of positions of the source; 0 if there is none."""

    @abstractmethod
    def bytes_a_document(self, n_tokens: int) -> int:
        """About how much memory a forward pass with its gradient needs for a document of that length."""

    @torch.no_grad()
    def edited(self, documents: Sequence[Document], edit: Edit) -> Float[np.ndarray, "batch class"]:
        """The logits under edited attention: `edit` receives every layer's maps and returns those to use."""
        layers = count()

        def change(call: Attended) -> Tensor:
            return edit(next(layers), call.maps()).to(call.v) @ call.v

        with still(self.network), self.listening(change):
            logits = self.forward(self.embed(documents), documents).double().cpu().numpy()
        if not np.isfinite(logits).all():
            raise BadInput("Under this attention the model's output is not a finite number.")
        return logits


class OneTower(Recordable):
    """A model without a separate source: its inputs are the documents' tokens."""

    def placed(
        self,
        documents: Sequence[Document],  # noqa: ARG002
        own: Float[Tensor, "batch _"],
        source: Float[Tensor, "batch _"] | None,  # noqa: ARG002
    ) -> Float[Tensor, "batch token"]:
        """The numbers as they are."""
        return own

    def n_sources(self, documents: Sequence[Document]) -> int:  # noqa: ARG002
        """There is no source."""
        return 0


def rounding(dtype: torch.dtype) -> float:
    """The relative rounding error of a pass in that precision, at worst; 0 in double precision: it is negligible.

    256 times the machine precision: of random BERTs of up to 24 layers, trained ones, and ones with weights so large
    that they amplify rounding, none had more than 140 times (docs/methods/gradient.md).
    """
    return 0.0 if dtype == torch.float64 else 256 * torch.finfo(dtype).eps


def portions(model: Recordable, documents: Sequence[Document]) -> list[Sequence[Document]]:
    """The documents in order, in batches of at most half a gigabyte that the model can process together."""
    longest = max(len(document.ids) for document in documents)
    n = max(1, PASS_MEMORY // model.bytes_a_document(longest))
    batches, start = [], 0
    for end in range(1, len(documents) + 1):
        full = end - start == n or end == len(documents)
        if full or not (model.ragged or len(documents[end].ids) == len(documents[start].ids)):
            batches.append(documents[start:end])
            start = end
    return batches


@torch.no_grad()
def record(model: Recordable, documents: Sequence[Document]) -> Recording:
    """Runs the model once and stores the inputs of its attention layers."""
    calls: list[Attended] = []

    def note(call: Attended) -> Tensor:
        calls.append(call)
        return call.output()

    with still(model.network), model.listening(note):
        logits = model.forward(model.embed(documents), documents)
    return Recording(tuple(calls), logits)


@torch.no_grad()
def read_rows(
    model: Recordable, documents: Sequence[Document], recording: Recording
) -> Float[Tensor, "batch layer head token"]:
    """The attention of the positions that are read out, in every layer that attends to the document.

    In an encoder-decoder these are the decoder's cross-attention rows; its attention to its own prefix is left out.
    """
    readout, n_sources = model.readout(documents), model.n_sources(documents)
    layers = []
    for call in recording.calls:
        if call.kind == ("cross" if n_sources else "self"):
            heads = (
                call.pulled(readout.to(torch.float64 if call.k.dtype == torch.float64 else torch.float32))
                .double()
                .unbind(1)
            )
            nothing = readout.double() * 0
            pairs = [(nothing, head) if n_sources else (head, None) for head in heads]
            layers.append(torch.stack([model.placed(documents, *pair) for pair in pairs], dim=1))
    return torch.stack(layers, dim=1)


@torch.no_grad()
def read_maps(
    model: Recordable, document: Document, recording: Recording, index: int
) -> Float[np.ndarray, "layer head query key"]:
    """The whole attention matrices of one recorded document, by index; of an encoder-decoder its cross-attention."""
    kind = "cross" if model.n_sources([document]) else "self"
    maps = [call.maps()[index].double() for call in recording.calls if call.kind == kind]
    return torch.stack(maps).cpu().numpy()
