"""Hugging Face models with numbers at every token: an output is read at a place of the text.

Which tokens are read is decided when a text is encoded, and stays with them in masked copies.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from heedful.document import Document
from heedful.errors import Unsupported
from heedful.models.attention_hook import still
from heedful.models.fingerprint import fingerprint_of
from heedful.models.hf.reader import HfReader
from heedful.models.layered import stacked
from heedful.models.readout import counted_forwards, influence


class HfAtPlaces(HfReader):
    """A model that is read at tokens of the text: a column of `attached` has the weights of a place, which sum to 1."""

    about_labels = "this model has outputs for places of a text, not for the text"
    origin: Any = None
    """The model that this one was made from by `at`; None if no place was named."""

    @abstractmethod
    def token_outputs(self, output: Any) -> Float[Tensor, "batch token output"]:
        """The numbers of every token, from what the network returns."""

    @abstractmethod
    def picked(self, rows: Float[Tensor, "batch place output"]) -> Float[Tensor, "batch class"]:
        """The model's outputs, from the numbers at the places that are read."""

    def prepare(self, network: Any, tokenizer: PreTrainedTokenizerBase, classes: tuple[str, ...], example: Any) -> None:
        """Keeps the network; attention is withheld if it also counts where the output is not read."""
        self.take(network, tokenizer)
        self.classes = self.named = classes
        with counted_forwards(network) as passes:
            document = self.encode(example)
            try:
                elsewhere = ~_weights([document])[0].any(dim=1).numpy()
                if influence(self, document, np.flatnonzero(elsewhere).tolist()).any():
                    raise Unsupported("The output also depends on attention of the last layer at other positions.")
            except Unsupported as error:
                self.withheld = dict.fromkeys(("attention", "layers"), str(error))
        self.probe_forwards = len(passes)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes; `at` adds the place."""
        return fingerprint_of(self.network, self.named)

    def at(self, asked: str, classes: tuple[str, ...]) -> Any:
        """The same model with its outputs read at another place."""
        origin = self.origin or self
        made = copy(origin)
        made.origin, made.classes = origin, classes
        made.fingerprint = hashlib.sha256(f"{origin.fingerprint} {asked}".encode()).hexdigest()[:16]
        return made

    def all_outputs(self, document: Document) -> Float[Tensor, "token output"]:
        """The numbers at every token of a document, from one pass."""
        with torch.no_grad(), still(self.network):
            return self.token_outputs(self.run(self.embed([document]), [document], None))[0]

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The outputs at the places of the documents, from those vectors."""
        weights = _weights(documents)
        if (weights.sum(dim=1) < 1 - 1e-9).any():
            raise Unsupported("The token that the output is read at was deleted; use the absence 'replace' or 'mask'.")
        outputs = self.token_outputs(self.run(embeddings, documents, hidden))
        return self.picked(torch.einsum("btp,bto->bpo", weights.to(outputs), outputs))

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each token that is read; of an answer its start and its end have a half each."""
        weights = _weights(documents)
        return weights.mean(dim=2).to(next(self.network.parameters()).device)


def placed_at(document: Document, *tokens: Sequence[int]) -> Float[np.ndarray, "token place"]:
    """The weights of places: each is the mean of some tokens."""
    columns = np.zeros((len(document.ids), len(tokens)))
    for column, own in zip(columns.T, tokens, strict=True):
        column[list(own)] = 1 / len(own)
    return columns


def _weights(documents: Sequence[Document]) -> Float[Tensor, "batch token place"]:
    """The weights of the places of every document, 0 at padding."""
    return stacked([document.attached for document in documents])
