"""What all Hugging Face models share that read a text or a pair in one tower: its tokens, vectors and one pass."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from heedful.document import Document
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.fingerprint import check_weights
from heedful.models.hf.next_token import plain_ids
from heedful.models.hf.pretrained import HfText
from heedful.models.hf.text import embedded, filler, look_up, replacement_token, room
from heedful.models.layered import padded
from heedful.models.recording import OneTower
from heedful.models.twins.coordinates import word_table


class HfReader(HfText, OneTower):
    """A Hugging Face model with one tower, whose head is a task's."""

    n_choices: int = 0
    """The number of choices in a row of the network's input; 0 if a row is a text."""

    def take(self, network: Any, tokenizer: PreTrainedTokenizerBase) -> None:
        """Keeps the network and its tokenizer, and what follows from them."""
        check_weights(network)
        self.network = network
        self.tokenizer = tokenizer
        self.replacement_id = replacement_token(tokenizer)
        self.room = room(network, tokenizer)
        # A decoder with a classification head finds the end of a text by its padding id.
        pad = network.config.get_text_config().pad_token_id
        self._filler = filler(tokenizer) if pad is None else int(pad)
        if self.replacement_id == self._filler:
            # A padding token inside a text would be taken for its end.
            self.replacement_id = next(n for n in plain_ids(tokenizer, " _") if n != self._filler)

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        ids, _ = padded([document.ids for document in documents], self._filler)
        return look_up(word_table(self.network), ids.to(next(self.network.parameters()).device))

    def run(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None,
    ) -> Any:
        """What the network returns for those vectors."""
        ids, is_token = (x.to(embeddings.device) for x in padded([d.ids for d in documents], self._filler))
        arguments: dict[str, Any] = {"input_ids": ids}
        # If nothing is hidden, attention is faster without a mask.
        if hidden is not None or not is_token.all():
            arguments["attention_mask"] = (is_token if hidden is None else is_token & ~hidden).long()
        if "token_type_ids" in self.tokenizer.model_input_names and any(d.segments is not None for d in documents):
            rows = [d.segments if d.segments is not None else np.zeros_like(d.ids) for d in documents]
            arguments["token_type_ids"] = padded(rows, 0)[0].to(embeddings.device)
        if self.n_choices:
            arguments = {name: x.unflatten(0, (-1, self.n_choices)) for name, x in arguments.items()}
        text = self.network.config.get_text_config()
        with ONE_THREAD:
            pad = text.pad_token_id
            try:
                text.pad_token_id = self._filler
                with embedded(word_table(self.network), [(ids, embeddings)]):
                    return self.network(**arguments)
            finally:
                text.pad_token_id = pad
