"""Hugging Face models that continue a text: GPT-2, Llama, Mistral, Qwen and their kin; the classes are the tokens."""

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import Document, one_text
from heedful.models import Offer
from heedful.models.attention_hook import Listener
from heedful.models.hf_hook import listening
from heedful.models.hf_text import (
    embedded,
    filler,
    look_up,
    read_text,
    room,
    stand_in_of,
    token_of,
    width_of,
)
from heedful.models.layered import padded, readout_rows
from heedful.models.one_tower import OneTower
from heedful.models.weights import check_weights, fingerprint_of


@final
class HfDecoder(OneTower):
    """A causal language model; its logits are those of the token that comes next after the text."""

    offers: frozenset[Offer] = frozenset({"masks", "gradients", "attention", "layers"})

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        check_weights(network)
        self.network = network
        self.tokenizer = tokenizer
        self.stand_in = stand_in_of(tokenizer)
        self._room = room(network, tokenizer)
        self._one_row = "logits_to_keep" in inspect.signature(network.forward).parameters

    def __repr__(self) -> str:
        return f"<{type(self.network).__name__} {self.fingerprint}: {len(self.classes):,} tokens>"

    @cached_property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        n_tokens = self.network.get_output_embeddings().weight.shape[0]
        return tuple(self.tokenizer.batch_decode([[number] for number in range(n_tokens)]))

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        return fingerprint_of(self.network, ())

    def encode(self, text: object) -> Document:
        return read_text(self.tokenizer, one_text(text), self._room)

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        ids, _ = padded([document.ids for document in documents], filler(self.tokenizer))
        return look_up(self.network.get_input_embeddings(), ids.to(self.network.device))

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        ids, there = (x.to(embeddings.device) for x in padded([d.ids for d in documents], filler(self.tokenizer)))
        last = there.sum(dim=1) - 1
        wanted, place = last.unique(return_inverse=True)
        asked: dict[str, Any] = {"input_ids": ids, "use_cache": False}
        if not there.all() or hidden is not None:
            asked["attention_mask"] = (there if hidden is None else there & ~hidden).long()
        if self._one_row:
            asked["logits_to_keep"] = wanted
        with embedded(self.network.get_input_embeddings(), [(ids, embeddings)]):
            logits = self.network(**asked).logits
        return logits[torch.arange(len(ids), device=logits.device), place if self._one_row else last]

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        return listening(self.network, listener)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        return readout_rows("last", [len(d.ids) for d in documents]).to(self.network.device)

    def bytes_a_document(self, n_tokens: int) -> int:
        n_layers, width = width_of(self.network)
        return 64 * n_layers * width * n_tokens

    def word_id(self, word: str) -> int:
        return token_of(self.tokenizer, word)

    def filled(self, documents: Sequence[Document], vector: Float[Tensor, "d_e"]) -> Float[Tensor, "batch token d_e"]:
        return vector.expand_as(self.embed(documents))

    def mean_embedding(self) -> Float[Tensor, "d_e"]:
        table = self.network.get_input_embeddings()
        # What the table gives, not what it holds: some scale it.
        return table(torch.arange(table.num_embeddings, device=table.weight.device)).mean(dim=0)
