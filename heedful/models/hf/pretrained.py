"""Base classes of Hugging Face models: all models, those that read text, and those that generate it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import Document
from heedful.document.alignment.align import align
from heedful.models.attention_hook import ONE_THREAD, Listener
from heedful.models.fingerprint import fingerprint_of
from heedful.models.hf.hook import listening
from heedful.models.hf.next_token import Surfaces, TokenNames, plain_ids, surfaces_of, text_before
from heedful.models.hf.text import token_of
from heedful.models.language import LanguageModel
from heedful.models.language.appended import append_output, tokens_behind
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
    n_logits: int = 0
    """The numbers that a pass computes at every token behind the last layer, where they are many."""

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener gets every attention call of the network."""
        return listening(self.network, listener)

    def bytes_a_document(self, n_tokens: int) -> int:
        """An estimate per token: 64 bytes for each layer and coordinate of every tower, 16 for each logit."""
        config: Any = self.network.config
        text = config.get_text_config()
        n_layers, width = getattr(text, "num_hidden_layers", 0) or 12, getattr(text, "hidden_size", 0) or 768
        if isinstance(n_layers, dict):
            n_layers = sum(n_layers.values())
        return (64 * self.n_towers * int(n_layers) * int(width) + 16 * self.n_logits) * n_tokens

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


class HfGenerator(HfText, LanguageModel):
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
        return TokenNames(self._surfaces, text_before(document), self.n_towers == 2)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights."""
        return fingerprint_of(self.network, ())

    @cached_property
    def end_ids(self) -> frozenset[int]:  # type: ignore[override]
        """The tokens that end a text, by the generation settings of the model or by its tokenizer."""
        tokenizer: Any = self.tokenizer
        named = getattr(self.network.generation_config, "eos_token_id", None)
        named = tokenizer.eos_token_id if named is None else named
        return frozenset([] if named is None else [named] if isinstance(named, int) else named)

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The logits of the next token from those vectors."""
        return self.token_logits(embeddings, documents, hidden)[:, 0]

    @property
    def head(self) -> nn.Module:
        """The layer that turns the states of the last layer into logits."""
        return self.network.get_output_embeddings()

    def spell(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        with ONE_THREAD:
            return str(self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def typed(self, document: Document, text: str) -> list[int]:
        """The tokens of a text that stands behind a document."""
        return tokens_behind(text_before(document), text, partial(plain_ids, self.tokenizer, target=self.n_towers == 2))

    def continued(self, document: Document, ids: Sequence[int]) -> Document:
        """A document with tokens that the model wrote or could have written behind it, in segment 1."""
        ids, two = [int(number) for number in ids], self.n_towers == 2
        own = np.ones(len(document.ids), dtype=bool) if not two else document.segments == 1
        before = [*document.ids[own].tolist()]
        # Decoded behind what it follows: alone, the space of the first token would be lost.
        added = self.spell([*before, *ids]).removeprefix(self.spell(before))
        gap = "\n" if two and not any(word >= 0 for word in document.words[own]) else ""
        special = [number in self.tokenizer.all_special_ids for number in ids]
        with ONE_THREAD:
            alignment = align(self.tokenizer, ids, (added,), special, None, None)
        return append_output(document, ids, added, alignment, gap)
