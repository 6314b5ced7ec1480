"""Base classes of Hugging Face models: all models, those that read text, and those that generate it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import Document
from heedful.models.attention_hook import ONE_THREAD, Listener
from heedful.models.fingerprint import fingerprint_of
from heedful.models.hf.hook import listening
from heedful.models.hf.next_token import Surfaces, TokenNames, surfaces_of
from heedful.models.hf.text import token_of
from heedful.models.layered import LayeredModel
from heedful.models.readout import READ_FROM
from heedful.models.twins.coordinates import word_table
from heedful.target import Returns


def returned_by(network: PreTrainedModel) -> Returns:
    """What a classifier returns, by the kind of problem in its configuration."""
    kinds: dict[str, Returns] = {"multi_label_classification": "independent-logits", "regression": "scores"}
    return kinds.get(str(network.config.problem_type), "logits")


class HfModel(LayeredModel):
    """A Hugging Face model, whose attention is recorded through transformers' attention interface."""

    network: Any
    n_towers: int = 1

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener gets every attention call of the network."""
        return listening(self.network, listener)

    def bytes_a_document(self, n_tokens: int) -> int:
        """An estimate: 64 bytes per token, layer and coordinate of encoder and decoder."""
        config: Any = self.network.config
        text = config.get_text_config()
        n_layers, width = getattr(text, "num_hidden_layers", 0) or 12, getattr(text, "hidden_size", 0) or 768
        return 64 * self.n_towers * int(n_layers) * int(width) * n_tokens

    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """The vector at every token."""
        return vector.expand_as(self.embed(documents))


class HfText(HfModel):
    """A Hugging Face model that reads text with a tokenizer."""

    tokenizer: PreTrainedTokenizerBase

    def word_id(self, word: str) -> int:
        """The one token that a word is inside a text."""
        return token_of(self.tokenizer, word)

    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:  # noqa: ARG002
        """Zeros, or the mean output of the embedding table, which some models scale."""
        network: Any = self.network
        table = word_table(network.get_encoder() if network.config.is_encoder_decoder else network)
        with ONE_THREAD:
            every = table(torch.arange(int(table.num_embeddings), device=table.weight.device))
        return every.mean(dim=0) if kind == "mean" else torch.zeros_like(every[0])


class HfGenerator(HfText):
    """A Hugging Face model that generates text: its classes are the possible next tokens."""

    reads = READ_FROM["last"]
    outputs = "next tokens"

    @cached_property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The characters that every token adds to a text."""
        table: Any = self.network.get_output_embeddings()
        return surfaces_of(self.tokenizer, table.weight.shape[0])

    @cached_property
    def _surfaces(self) -> Surfaces:
        return Surfaces(self.tokenizer, self.classes)

    def target_names(self, document: Document | None) -> TokenNames:
        """The names of the tokens after the document, or after the start of its translation."""
        if document is None:
            return TokenNames(self._surfaces)
        return TokenNames(self._surfaces, _read_text(document), self.n_towers == 2)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights."""
        return fingerprint_of(self.network, ())


def _read_text(document: Document) -> str:
    """The text before the next token, as far as it was read; of an encoder-decoder the start of the output."""
    own = np.ones_like(document.words, dtype=bool) if document.segments is None else document.segments == 1
    spans = [span for span, mine, word in zip(document.spans, own, document.words, strict=True) if mine and word >= 0]
    if not spans:
        return ""
    end = spans[-1][1] if any(note.kind == "truncated" for note in document.notes) else len(document.text)
    return document.text[spans[0][0] : end]
