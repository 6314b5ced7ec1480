"""Classifiers of texts by a transformer encoder over word pieces, such as the bundled model "reviews"."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.document import Document
from heedful.errors import BadInput
from heedful.models.attention_hook import Listener, heard
from heedful.models.encoder.network import EncoderNetwork
from heedful.models.encoder.word_pieces import MASK_ID, PAD_ID, SPECIAL_PIECES, UNKNOWN_ID, WordPieces
from heedful.models.fingerprint import fingerprint_of
from heedful.models.layered import LayeredModel, padded
from heedful.models.readout import READ_FROM, readout_rows
from heedful.models.recording import OneTower


@final
class EncoderClassifier(LayeredModel, OneTower):
    """An encoder with its vocabulary and classes; the logits are read from the mean of all tokens.

    Padding is hidden from attention and not part of the mean. Removed words are [MASK], as in the pre-training.
    """

    replacement_id = MASK_ID
    reads = READ_FROM["all"]

    def __init__(self, network: EncoderNetwork, vocabulary: WordPieces, classes: Sequence[str]) -> None:
        self.network = network
        self.vocabulary = vocabulary
        self.family = f"encoder of {network.config.depth} layers × {network.config.n_heads} heads"
        self.classes = tuple(classes)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes."""
        return fingerprint_of(self.network, (*self.classes, *self.vocabulary.pieces, repr(self.network.config)))

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        return self.vocabulary.read(text, self.network.config.T_max)

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network, without their positions."""
        ids, _ = padded([document.ids for document in documents], PAD_ID)
        return nn.functional.embedding(ids.to(self.network.W_e.device), self.network.W_e)

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The logits from those vectors."""
        ids, seen = (x.to(embeddings.device) for x in padded([document.ids for document in documents], PAD_ID))
        self.network.tokens(ids)
        return self.network(embeddings, seen if hidden is None else seen & ~hidden)

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener receives every attention call."""
        return heard(self.network, listener)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        return readout_rows("all", [len(document.ids) for document in documents]).to(self.network.W_e.device)

    def bytes_a_document(self, n_tokens: int) -> int:
        """An estimate of the memory of a pass with its gradient."""
        config = self.network.config
        cells = config.n_heads * n_tokens + 14 * config.d_e + 3 * config.d_hidden
        return self.network.W_e.element_size() * n_tokens * config.depth * cells

    def word_id(self, word: str) -> int:
        """The token of a word that replaces others."""
        pieces = self.vocabulary.split(word)
        if len(pieces) != 1 or pieces[0].id == UNKNOWN_ID:
            raise BadInput(f"{word!r} is not one token of this model, so it cannot replace words; give another word.")
        return pieces[0].id

    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:  # noqa: ARG002
        """Zeros, or the mean of the table of word vectors."""
        words = self.network.W_e[len(SPECIAL_PIECES) :]
        return words.mean(dim=0) if kind == "mean" else torch.zeros_like(words[0])

    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """The vector at every token."""
        return vector.expand_as(self.embed(documents))
