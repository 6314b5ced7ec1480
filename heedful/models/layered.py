"""Models of several attention layers, whose outputs come from forward passes."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.document import SPECIAL, Document
from heedful.models import Model
from heedful.models.attention_hook import still
from heedful.models.masked_forward import Maskable
from heedful.models.recording import portions, read_maps, read_rows, record
from heedful.target import Scale


class LayeredModel(Maskable):
    """A model of several attention layers, whose outputs come from forward passes."""

    def predict(self, texts: Sequence[Any]) -> Float[np.ndarray, "batch class"]:
        """The logits of every text."""
        return self.logits([self.encode(text) for text in texts])

    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        """The logits of every document, in batches that fit into memory."""
        if not documents:
            return np.zeros((0, len(self.classes)))
        with torch.no_grad(), still(self.network):
            rows = [self.forward(self.embed(some), some) for some in portions(self, documents)]
        return torch.cat(rows).double().cpu().numpy()

    def absent(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """e with every token but the special ones replaced; of an image zeros, which is grey."""
        if documents[0].picture is not None:
            return torch.zeros_like(self.embed(documents))
        emptied = [replace(d, ids=np.where(d.words == SPECIAL, d.ids, self.replacement_id)) for d in documents]
        return self.embed(emptied)

    def attention(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch layer head key"]:
        """Attention of the positions that are read out, from one recorded pass."""
        return read_rows(self, documents, record(self, documents)).cpu().numpy()

    @torch.no_grad()
    def maps(self, document: Document) -> Float[np.ndarray, "layer head query key"]:
        """The whole attention matrices, from one recorded pass; of an encoder-decoder its cross-attention."""
        return read_maps(self, document, record(self, [document]), 0)


class Derived(LayeredModel):
    """A model that reads another quantity out of the network of its base: what was written, or a feature of a layer."""

    base: Any
    """The model whose network it is. It may be derived itself."""

    @abstractmethod
    def explained(self, scale: Scale) -> str:
        """What is explained on this scale, as a report names it."""

    @property
    def network(self) -> Any:  # type: ignore[override]
        """The base's, so that a copy of the model has one network."""
        return self.base.network

    @property
    def replacement_id(self) -> int:  # type: ignore[override]
        """The base's."""
        return self.base.replacement_id

    @property
    def ragged(self) -> bool:  # type: ignore[override]
        """Whether texts of different lengths can share a batch."""
        return self.base.ragged

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        return self.base.embed(documents)

    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """The vector at every token."""
        return self.base.filled(documents, vector)

    def word_id(self, word: str) -> int:
        """The token of a word that replaces others."""
        return self.base.word_id(word)

    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:
        """The vector that replaces a removed token's."""
        return self.base.gone_vector(document, kind)


def root_of(model: Model) -> Model:
    """The model whose network it is, if it is derived; else the model itself."""
    while isinstance(model, Derived):
        model = model.base
    return model


def stacked(rows: Sequence[Any]) -> Float[Tensor, "batch token column"]:
    """Rows of numbers for the tokens of every document, zeros behind them."""
    longest = max(map(len, rows))
    return torch.from_numpy(np.stack([np.pad(row, ((0, longest - len(row)), (0, 0))) for row in rows]))


def padded(
    rows: Sequence[Int[np.ndarray, "_"]], filler: int
) -> tuple[Int[Tensor, "batch token"], Bool[Tensor, "batch token"]]:
    """Token ids padded on the right to the longest document, and a mask of the positions that hold a token."""
    longest = max(len(row) for row in rows)
    numbers, filled = np.full((len(rows), longest), filler), np.zeros((len(rows), longest), dtype=bool)
    for number, place, row in zip(numbers, filled, rows, strict=True):
        number[: len(row)] = row
        place[: len(row)] = True
    return torch.from_numpy(numbers), torch.from_numpy(filled)
