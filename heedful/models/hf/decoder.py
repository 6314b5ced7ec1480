"""Hugging Face models that continue a text, such as GPT-2, Llama, Mistral, Qwen; the classes are the tokens."""

import inspect
from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import Document, check_text
from heedful.models.attention_hook import is_heard
from heedful.models.fingerprint import check_weights
from heedful.models.hf.pretrained import HfGenerator
from heedful.models.hf.text import (
    embedded,
    filler,
    look_up,
    read_text,
    replacement_token,
    room,
)
from heedful.models.layered import padded
from heedful.models.readout import readout_rows
from heedful.models.recording import OneTower
from heedful.models.twins.coordinates import word_table

_WORTHWHILE = 8


@final
class HfDecoder(HfGenerator, OneTower):  # type: ignore[misc]
    """A causal language model; its logits are those of the token that comes next after the text."""

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        check_weights(network)
        self.network = network
        self.tokenizer = tokenizer
        self.replacement_id = replacement_token(tokenizer)
        self._room = room(network, tokenizer)
        takes = inspect.signature(network.forward).parameters
        self._one_row = "logits_to_keep" in takes
        # With a sliding window the cache would lose tokens that it must keep.
        self._caches = "past_key_values" in takes and getattr(network.config, "sliding_window", None) is None

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        return read_text(self.tokenizer, check_text(text), self._room)

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        ids, _ = padded([document.ids for document in documents], filler(self.tokenizer))
        return look_up(word_table(self.network), ids.to(self.network.device))

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The logits from those vectors."""
        ids, is_token = (x.to(embeddings.device) for x in padded([d.ids for d in documents], filler(self.tokenizer)))
        seen = None if hidden is None and is_token.all() else is_token if hidden is None else is_token & ~hidden
        arguments: dict[str, Any] = {} if seen is None else {"attention_mask": seen.long()}
        n_shared = self._n_shared(embeddings, seen, int(is_token.sum(dim=1).min()))
        if n_shared:
            prefix = arguments | {"input_ids": ids[:1, :n_shared].clone(), "use_cache": True}
            if seen is not None:
                prefix["attention_mask"] = seen[:1, :n_shared].long()
            prefix |= {"logits_to_keep": 1} if self._one_row else {}
            with embedded(word_table(self.network), [(prefix["input_ids"], embeddings[:1, :n_shared])]):
                cache = self.network(**prefix).past_key_values
            cache.batch_repeat_interleave(len(ids))
            arguments["past_key_values"] = cache
        last = is_token.sum(dim=1) - 1 - n_shared
        wanted, place = last.unique(return_inverse=True)
        rest = ids[:, n_shared:].contiguous()
        arguments |= {"input_ids": rest, "use_cache": bool(n_shared)}
        if self._one_row:
            arguments["logits_to_keep"] = wanted
        with embedded(word_table(self.network), [(rest, embeddings[:, n_shared:])]):
            logits = self.network(**arguments).logits
        return logits[torch.arange(len(ids), device=logits.device), place if self._one_row else last]

    def _n_shared(
        self, embeddings: Float[Tensor, "batch token d_e"], seen: Bool[Tensor, "batch token"] | None, shortest: int
    ) -> int:
        """The length of the batch's common prefix if caching it pays; 0 if attention is recorded or gradients flow."""
        if len(embeddings) < 4 or torch.is_grad_enabled() or is_heard(self.network) or not self._caches:
            return 0
        equal = (embeddings == embeddings[:1]).all(dim=2).all(dim=0)
        if seen is not None:
            # A position that is hidden in some text, or past the end of a shorter text, is not shared.
            equal &= seen.all(dim=0)
        # The last token of the shortest text is read after the prefix: its logits are wanted.
        n_shared = min(int(equal.long().cumprod(dim=0).sum()), shortest - 1)
        return n_shared if n_shared >= _WORTHWHILE else 0

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        return readout_rows("last", [len(d.ids) for d in documents]).to(self.network.device)
