"""Hugging Face models that continue a text, such as GPT-2, Llama, Mistral, Qwen; the classes are the tokens."""

import copy
import inspect
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import Document, check_text
from heedful.errors import Unsupported
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
from heedful.models.language import CutLogits, Prefix
from heedful.models.language.shared_prefix import shared_length
from heedful.models.layered import padded
from heedful.models.readout import readout_rows
from heedful.models.recording import OneTower
from heedful.models.twins.coordinates import word_table


@final
class HfDecoder(HfGenerator, OneTower):  # type: ignore[misc]
    """A causal language model; its logits are those of the token that comes next after the text."""

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        check_weights(network)
        self.network = network
        self.tokenizer = tokenizer
        self.replacement_id = replacement_token(tokenizer)
        self.room = room(network, tokenizer)
        takes = inspect.signature(network.forward).parameters
        self._some_rows = "logits_to_keep" in takes
        self._placed = "position_ids" in takes
        self.caches = "past_key_values" in takes
        # With a sliding window the cache would lose tokens that it must keep.
        self._caches = self.caches and getattr(network.config, "sliding_window", None) is None

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        return read_text(self.tokenizer, check_text(text), self.room)

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        ids, _ = padded([document.ids for document in documents], filler(self.tokenizer))
        return look_up(word_table(self.network), ids.to(self.network.device))

    def token_logits(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
        n_last: int = 1,
    ) -> Float[Tensor, "batch query vocabulary"]:
        """The logits after each of the last tokens of every document, from those vectors."""
        ids, is_token = (x.to(embeddings.device) for x in padded([d.ids for d in documents], filler(self.tokenizer)))
        seen = None if hidden is None and is_token.all() else is_token if hidden is None else is_token & ~hidden
        arguments: dict[str, Any] = {} if seen is None else {"attention_mask": seen.long()}
        lengths = is_token.sum(dim=1)
        n_shared = shared_length(self.network, embeddings, seen, int(lengths.min()) - n_last) if self._caches else 0
        if n_shared:
            first = ids[:1, :n_shared].clone()
            with embedded(word_table(self.network), [(first, embeddings[:1, :n_shared])]):
                cache = self._cached(first, None if seen is None else seen[:1, :n_shared].long()).past_key_values
            cache.batch_repeat_interleave(len(ids))
            arguments["past_key_values"] = cache
        places = (lengths - n_last - n_shared)[:, None] + torch.arange(n_last, device=ids.device)
        wanted, place = places.unique(return_inverse=True)
        rest = ids[:, n_shared:].contiguous()
        arguments |= {"input_ids": rest, "use_cache": bool(n_shared)}
        if self._some_rows:
            arguments["logits_to_keep"] = wanted
        with embedded(word_table(self.network), [(rest, embeddings[:, n_shared:])]):
            logits = self.network(**arguments).logits
        # The logits are large, so they are copied only if the rows of the batch differ in length.
        if self._some_rows and len(wanted) == n_last:
            return logits
        return logits[torch.arange(len(ids), device=logits.device)[:, None], place if self._some_rows else places]

    def _cached(self, ids: Int[Tensor, "row token"], seen: Tensor | None = None, cache: Any = None) -> Any:
        """The network's output on tokens, with its cache and the logits of the last position alone."""
        arguments: dict[str, Any] = {"input_ids": ids, "use_cache": True}
        arguments |= {"logits_to_keep": 1} if self._some_rows else {}
        arguments |= {} if seen is None else {"attention_mask": seen}
        return self.network(**arguments, **({} if cache is None else {"past_key_values": cache}))

    def read(self, document: Document) -> Prefix:
        """Reads a document, as a prefix of one row."""
        return self._read(torch.from_numpy(document.ids)[None].to(self.network.device))

    def _read(self, ids: Int[Tensor, "row token"]) -> Prefix:
        if not self.caches:
            return Prefix(ids, self.network(input_ids=ids).logits[:, -1], ids.shape[1])
        output = self._cached(ids)
        return Prefix(output.past_key_values, output.logits[:, -1], ids.shape[1])

    def go_on(self, prefix: Prefix, ids: Int[Tensor, "row"]) -> Prefix:
        """Reads one more token in every row."""
        if not self.caches:
            return self._read(torch.cat([prefix.cache, ids[:, None]], dim=1))
        output = self._cached(ids[:, None], None, prefix.cache)
        return Prefix(output.past_key_values, output.logits[:, -1], prefix.n_read + 1)

    def select(self, prefix: Prefix, rows: Int[Tensor, "_"]) -> Prefix:
        """Some rows of a prefix."""
        if not self.caches:
            return Prefix(prefix.cache[rows], prefix.logits[rows], prefix.n_read)
        prefix.cache.reorder_cache(rows)
        return Prefix(prefix.cache, prefix.logits[rows], prefix.n_read)

    def cut(self, document: Document, n_last: int) -> CutLogits:
        """A function of masks: the last logits, if only these positions do not attend to the tokens masked out."""
        if not self._caches:
            raise Unsupported(f"{type(self.network).__name__} keeps no cache of all its tokens; use another absence.")
        ids = torch.from_numpy(document.ids)[None].to(self.network.device)
        n_before, device = ids.shape[1] - n_last, ids.device
        before = self._cached(ids[:, :n_before]).past_key_values if n_before else None
        here = torch.arange(n_last, device=device)
        causal = torch.arange(ids.shape[1], device=device) <= n_before + here[:, None]

        def logits(keep: Bool[np.ndarray, "mask token"]) -> Float[Tensor, "mask query vocabulary"]:
            cache = copy.deepcopy(before)
            if cache is not None:
                cache.batch_repeat_interleave(len(keep))
            seen = torch.from_numpy(keep).to(device)[:, None] & causal
            seen[:, here, n_before + here] = True
            number = self.network.dtype
            mask = torch.zeros(seen.shape, dtype=number, device=device).masked_fill(~seen, torch.finfo(number).min)
            arguments: dict[str, Any] = {
                "input_ids": ids[:, n_before:].expand(len(keep), -1),
                "attention_mask": mask[:, None],
            }
            if self._placed:
                arguments["position_ids"] = (n_before + here).expand(len(keep), -1)
            return self.network(**arguments, past_key_values=cache, use_cache=cache is not None).logits[:, -n_last:]

        return logits

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        return readout_rows("last", [len(d.ids) for d in documents]).to(self.network.device)
