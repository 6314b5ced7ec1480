"""Classifiers of texts or pairs by a classic network, with their vocabulary and classes."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.document import SPECIAL, Document, Pair
from heedful.document.alignment.align import join_texts
from heedful.errors import BadInput
from heedful.models.attention_hook import Listener, heard
from heedful.models.classic.network import ClassicNetwork
from heedful.models.fingerprint import fingerprint_of
from heedful.models.layered import LayeredModel, padded
from heedful.models.readout import readout_rows
from heedful.models.recording import OneTower
from heedful.models.vocabulary import SPECIAL_WORDS, UNK, Vocabulary, read_words

NO_TOKEN = -1
"""What is announced as the token of padding."""


@final
class Classic(LayeredModel, OneTower):
    """An encoder with attention over the words of a text, or of the first text of a pair.

    Only words get attention: not [cls], unless the text has no words, and not padding.
    """

    replacement_id = UNK
    reads = "the mean of the words, weighted by attention"

    def __init__(self, network: ClassicNetwork, vocabulary: Vocabulary, classes: Sequence[str]) -> None:
        self.network = network
        self.vocabulary = vocabulary
        self.family = f"{network.config.encoder} with {network.config.attention} attention"
        self.family += " over pairs" if network.config.pairs else ""
        self.classes = tuple(classes)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes."""
        return fingerprint_of(self.network, (*self.classes, *self.vocabulary.words, repr(self.network.config)))

    def encode(self, text: object) -> Document:
        """The text as this model reads it: [cls] and words; of a pair the same for each of its texts."""
        T_max = self.network.config.T_max
        if not self.network.config.pairs:
            return read_words(text, self.vocabulary, T_max)
        if not isinstance(text, Pair):
            raise BadInput(
                "This model reads pairs of texts; give heedful.Pair(first, second), or --second on the command line."
            )
        return _joined(*(read_words(part, self.vocabulary, T_max) for part in (text.first, text.second)))

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        ids, _ = padded([document.ids for document in documents], UNK)
        return nn.functional.embedding(ids.to(self.network.W_e.device), self.network.W_e)

    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """The vector at every token."""
        return vector.expand_as(self.embed(documents))

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The logits from those vectors. Hidden tokens get no attention; the encoder still reads their vectors."""
        ids, _ = padded([document.ids for document in documents], NO_TOKEN)
        self.network.tokens(ids.to(embeddings.device))
        lengths, seen = _layout(documents, embeddings.shape[1])
        seen = seen.to(embeddings.device)
        if hidden is not None:
            seen = seen & ~hidden
        # A text without words is read from [cls].
        alone = torch.zeros_like(seen)
        alone[:, 0] = ~seen.any(dim=1)
        return self.network(embeddings, lengths, seen | alone)

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener receives every attention call."""
        return heard(self.network, listener)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """1 at position 0: attention has one query."""
        return readout_rows("first", [len(document.ids) for document in documents]).to(self.network.W_e.device)

    def bytes_a_document(self, n_tokens: int) -> int:
        """An estimate of the memory of a pass with its gradient."""
        config = self.network.config
        # A step of an LSTM keeps four gates, its cell and its state.
        return self.network.W_e.element_size() * n_tokens * (3 * config.d_e + 12 * config.width)

    def word_id(self, word: str) -> int:
        """The token of a word that replaces others."""
        return self.vocabulary.id_of(word)

    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:  # noqa: ARG002
        """Zeros, or the mean of the table of word vectors."""
        words = self.network.W_e[len(SPECIAL_WORDS) :]
        return words.mean(dim=0) if kind == "mean" else torch.zeros_like(words[0])


def _joined(first: Document, second: Document) -> Document:
    """Two documents as that of a pair; both have their own [cls]."""
    start, n_words = len(first.text) + 1, len(first.ids) - 1
    spans = tuple((start + low, start + high) for low, high in second.spans)
    return replace(
        first,
        text=join_texts((first.text, second.text)),
        ids=np.concatenate([first.ids, second.ids]),
        pieces=(*first.pieces, *second.pieces),
        spans=(*first.spans, *spans),
        words=np.concatenate([first.words, np.where(second.words == SPECIAL, SPECIAL, second.words + n_words)]),
        known=np.concatenate([first.known, second.known]),
        notes=(*first.notes, *second.notes),
        segments=np.repeat([0, 1], [len(first.ids), len(second.ids)]),
    )


def _layout(documents: Sequence[Document], n_tokens: int) -> tuple[Int[Tensor, "2 batch"], Bool[Tensor, "batch token"]]:
    """The numbers of tokens of both texts, and which positions are words of the first."""
    lengths, words = np.zeros((2, len(documents)), dtype=np.int64), np.zeros((len(documents), n_tokens), dtype=bool)
    for length, row, document in zip(lengths.T, words, documents, strict=True):
        first = np.ones(len(document.ids), dtype=bool) if document.segments is None else document.segments == 0
        length[:] = first.sum(), (~first).sum()
        row[: len(first)] = first & (document.words != SPECIAL)
    return torch.from_numpy(lengths), torch.from_numpy(words)
