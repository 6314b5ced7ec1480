"""Hugging Face models that turn one text into another: T5, BART, Marian; the classes are the possible next tokens."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import BaseModelOutput

from heedful.document import SPECIAL, Document, Pair
from heedful.document.alignment.align import join_texts
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.fingerprint import check_weights
from heedful.models.hf.pretrained import HfGenerator
from heedful.models.hf.text import (
    embedded,
    filler,
    read_text,
    replacement_token,
    room,
)
from heedful.models.language import CutLogits, Prefix
from heedful.models.layered import padded
from heedful.models.readout import readout_rows
from heedful.models.twins.coordinates import word_table


@final
class HfEncoderDecoder(HfGenerator):
    """A sequence-to-sequence model that predicts the token after a prefix; `Pair(source, prefix)` gives both.

    A document's tokens are the source's, then the decoder's start token and those of the prefix (segment 1).
    """

    n_towers = 2

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        check_weights(network)
        self.network = network
        self.tokenizer = tokenizer
        self.replacement_id = replacement_token(tokenizer)
        self.room = room(network, tokenizer)
        config: Any = network.config
        generation: Any = network.generation_config
        start = next(
            (c.decoder_start_token_id for c in (config, generation) if c.decoder_start_token_id is not None), 0
        )
        self._start = int(start)
        self.first_id, self.last_id = map(_one_id, (generation.forced_bos_token_id, generation.forced_eos_token_id))

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        first, second = (text.first, text.second) if isinstance(text, Pair) else (text, "")
        source = read_text(self.tokenizer, first, self.room)
        room_left = None if self.room is None else self.room - 1
        prefix = read_text(self.tokenizer, second, room_left, special=False, target=True)
        n_source, n_words = len(source.ids), int(source.words.max(initial=SPECIAL)) + 1
        shift = len(source.text) + 1
        start = self.tokenizer.convert_ids_to_tokens(self._start)
        return replace(
            source,
            text=join_texts((source.text, prefix.text)) if second else source.text,
            ids=np.concatenate([source.ids, [self._start], prefix.ids]),
            pieces=(*source.pieces, str(start), *prefix.pieces),
            spans=(*source.spans, (len(source.text),) * 2, *((a + shift, b + shift) for a, b in prefix.spans)),
            words=np.concatenate(
                [source.words, [SPECIAL], np.where(prefix.words < 0, SPECIAL, prefix.words + n_words)]
            ),
            known=np.concatenate([source.known, [True], prefix.known]),
            notes=(*source.notes, *prefix.notes),
            segments=np.repeat([0, 1], [n_source, 1 + len(prefix.ids)]),
        )

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        ids, _ = padded([document.ids for document in documents], filler(self.tokenizer))
        ids = ids.to(self.network.device)
        encoder, decoder = (word_table(part) for part in (self.network.get_encoder(), self._decoder()))
        second = self._second(documents).to(ids.device)
        with ONE_THREAD:
            return torch.where(second[..., None], decoder(ids), encoder(ids))

    def token_logits(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
        n_last: int = 1,
    ) -> Float[Tensor, "batch query vocabulary"]:
        """The logits after each of the last tokens of every output, from those vectors."""
        device, fill = embeddings.device, filler(self.tokenizer)
        sides = []
        for segment in (0, 1):
            places = [np.flatnonzero(self._segments(d) == segment) for d in documents]
            ids, is_token = padded([d.ids[place] for d, place in zip(documents, places, strict=True)], fill)
            index = padded(places, 0)[0].to(device)
            e = embeddings.gather(1, index[..., None].expand(-1, -1, embeddings.shape[-1]))
            is_token = is_token.to(device)
            seen = is_token if hidden is None else is_token & ~hidden.gather(1, index)
            sides.append((ids.to(device), e, is_token, seen))
        (source, e_source, _, source_seen), (prefix, e_prefix, is_token, prefix_seen) = sides
        arguments: dict[str, Any] = {
            "input_ids": source,
            "attention_mask": source_seen.long(),
            "decoder_input_ids": prefix,
            "decoder_attention_mask": prefix_seen.long(),
            "use_cache": False,
        }
        with ExitStack() as replaced:
            # Encoder and decoder may share one table, so the ids that are looked up identify the caller.
            for table in {word_table(tower) for tower in (self.network.get_encoder(), self._decoder())}:
                replaced.enter_context(embedded(table, [(source, e_source), (prefix, e_prefix)]))
            logits = self.network(**arguments).logits
        places = (is_token.sum(dim=1) - n_last)[:, None] + torch.arange(n_last, device=device)
        if n_last == logits.shape[1] and bool(is_token.all()):
            return logits
        return logits[torch.arange(len(logits), device=device)[:, None], places]

    def read(self, document: Document) -> Prefix:
        """Reads the source and the start of the output, as a prefix of one row."""
        source, own = self._sides(document)
        states = self.network.get_encoder()(input_ids=source)
        output = self._decoded(states, {"decoder_input_ids": own})
        return Prefix(output.past_key_values, output.logits[:, -1], own.shape[1], states)

    def go_on(self, prefix: Prefix, ids: Int[Tensor, "row"]) -> Prefix:
        """Reads one more token of the output in every row."""
        arguments = {"decoder_input_ids": ids[:, None], "past_key_values": prefix.cache}
        output = self._decoded(prefix.source, arguments)
        return Prefix(output.past_key_values, output.logits[:, -1], prefix.n_read + 1, prefix.source)

    def select(self, prefix: Prefix, rows: Int[Tensor, "_"]) -> Prefix:
        """Some rows of a prefix."""
        prefix.cache.reorder_cache(rows)
        source = BaseModelOutput(last_hidden_state=prefix.source.last_hidden_state[rows])
        return Prefix(prefix.cache, prefix.logits[rows], prefix.n_read, source)

    def cut(self, document: Document, n_last: int) -> CutLogits:
        """A function of masks: the last logits, if the output does not attend to the tokens masked out.

        The source is encoded once, with every token.
        """
        source, own = self._sides(document)
        states = self.network.get_encoder()(input_ids=source).last_hidden_state
        second, (n_source, n_own) = torch.from_numpy(self._segments(document) == 1), (source.shape[1], own.shape[1])
        here = torch.arange(n_own, device=own.device)
        # What comes before the last positions is read with every token, and each position attends to itself.
        causal, always = here <= here[:, None], (here[:, None] < n_own - n_last) | (here == here[:, None])

        def logits(keep: Bool[np.ndarray, "mask token"]) -> Float[Tensor, "mask query vocabulary"]:
            kept = torch.from_numpy(keep).to(own.device)
            seen, number = causal & (kept[:, None, second] | always), self.network.dtype
            mask = torch.zeros(seen.shape, dtype=number, device=own.device).masked_fill(~seen, torch.finfo(number).min)
            arguments = {
                "decoder_input_ids": own.expand(len(keep), -1),
                "attention_mask": kept[:, :n_source].long(),
                "decoder_attention_mask": mask[:, None],
            }
            copies = BaseModelOutput(last_hidden_state=states.expand(len(keep), -1, -1))
            return self._decoded(copies, arguments, cached=False).logits[:, -n_last:]

        return logits

    def _sides(self, document: Document) -> tuple[Int[Tensor, "1 _"], Int[Tensor, "1 _"]]:
        """The token ids of the source, and of the output with its start token."""
        ids, second = torch.from_numpy(document.ids).to(self.network.device), self._segments(document) == 1
        return ids[None, ~second], ids[None, second]

    def _decoded(self, states: Any, arguments: dict[str, Any], cached: bool = True) -> Any:
        return self.network(encoder_outputs=states, use_cache=cached, **arguments)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        lengths = [int((self._segments(d) == 1).sum()) for d in documents]
        return readout_rows("last", lengths).to(self.network.device)

    def placed(
        self, documents: Sequence[Document], own: Float[Tensor, "batch _"], source: Float[Tensor, "batch _"] | None
    ) -> Float[Tensor, "batch token"]:
        """Numbers of encoder and decoder in the order of the document's tokens."""
        longest = max(len(d.ids) for d in documents)
        rows = own.new_zeros(len(documents), longest)
        for row, document, mine, theirs in zip(rows, documents, own, own if source is None else source, strict=True):
            n_source = int((self._segments(document) == 0).sum())
            if source is not None:
                row[:n_source] = theirs[:n_source].to(row)
            row[n_source : len(document.ids)] = mine[: len(document.ids) - n_source]
        return rows

    def n_sources(self, documents: Sequence[Document]) -> int:
        """How many positions the longest source has."""
        return max(int((self._segments(d) == 0).sum()) for d in documents)

    def _decoder(self) -> PreTrainedModel:
        return self.network.get_decoder()

    def _segments(self, document: Document) -> Int[np.ndarray, "token"]:
        assert document.segments is not None
        return document.segments

    def _second(self, documents: Sequence[Document]) -> Bool[Tensor, "batch token"]:
        return padded([self._segments(d) for d in documents], 0)[0] == 1


def _one_id(setting: int | list[int] | None) -> int | None:
    """The token of a setting that may name several."""
    return setting[0] if isinstance(setting, list) and setting else setting if isinstance(setting, int) else None
