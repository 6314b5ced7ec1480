"""A masked language model that draws words for masked positions of a text."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from transformers import AutoModelForMaskedLM, PreTrainedModel

from heedful.document import Pair
from heedful.errors import BadInput, Unsupported
from heedful.models.attention_hook import ONE_THREAD, still
from heedful.models.hf.load import load_network
from heedful.models.hf.text import room

_STARTS = ("Ġ", "▁")
"""How tokens that start a word begin, in vocabularies that mark them."""


@final
@dataclass(frozen=True, eq=False)
class Filler:
    """Draws a word for each mask token of a text, independently, from the model's distribution over whole words.

    Whole words are tokens that are a word by themselves; pieces and special tokens are never drawn, and the
    probabilities of the others are scaled to sum to 1.
    """

    name: str
    network: PreTrainedModel
    tokenizer: Any

    @property
    def mask(self) -> str:
        """The mask token as text."""
        return str(self.tokenizer.mask_token)

    @torch.no_grad()
    def distributions(self, text: str | Pair, n: int) -> Float[np.ndarray, "place token"]:
        """The probabilities of all tokens at the n mask tokens of a text."""
        parts = (text.first, text.second) if isinstance(text, Pair) else (text,)
        with ONE_THREAD:
            read = self.tokenizer(*parts, return_tensors="pt", verbose=False)
        ids, most = read["input_ids"], room(self.network, self.tokenizer)
        places = ids[0] == self.tokenizer.mask_token_id
        if most is not None and ids.shape[1] > most:
            raise Unsupported(f"The text has {ids.shape[1]:,} tokens and {self.name} reads {most:,}; shorten the text.")
        if int(places.sum()) != n:
            raise Unsupported(f"The text contains {self.mask!r}, the mask token of {self.name}; remove it.")
        with still(self.network):
            logits = self.network(**read.to(self.network.device)).logits[0].double().cpu()[places]
        logits[:, ~torch.from_numpy(self.whole[: logits.shape[1]])] = -torch.inf
        return logits.softmax(dim=1).numpy()

    def draw(self, text: str | Pair, n: int, n_draws: int, rng: np.random.Generator) -> list[list[str]]:
        """Words for the n mask tokens of a text, as many lists as there are draws."""
        if n == 0:
            return [[] for _ in range(n_draws)]
        steps, places = self.distributions(text, n).cumsum(axis=1), rng.random((n, n_draws))
        chosen = np.stack(
            [np.searchsorted(row, u * row[-1], side="right") for row, u in zip(steps, places, strict=True)]
        )
        with ONE_THREAD:
            return [[self.tokenizer.decode([number]).strip() for number in column] for column in chosen.T.tolist()]

    @property
    def whole(self) -> Bool[np.ndarray, "token"]:
        """Which tokens are a word by themselves."""
        return _whole_words(self.tokenizer, self.network.config.vocab_size)


@lru_cache(maxsize=4)
def _whole_words(tokenizer: Any, n_tokens: int) -> Bool[np.ndarray, "token"]:
    with ONE_THREAD:
        pieces = tokenizer.convert_ids_to_tokens(list(range(min(n_tokens, len(tokenizer)))))
        texts = [tokenizer.decode([number]).strip() for number in range(len(pieces))]
    marked = any(piece.startswith(_STARTS) for piece in pieces)
    whole = np.zeros(n_tokens, dtype=bool)
    for number, (piece, text) in enumerate(zip(pieces, texts, strict=True)):
        starts = piece.startswith(_STARTS) if marked else not piece.startswith("##")
        whole[number] = starts and bool(text) and "\ufffd" not in text and " " not in text
    whole[[number for number in tokenizer.all_special_ids if number < n_tokens]] = False
    return whole


@lru_cache(maxsize=2)
def filler_of(name: str) -> Filler:
    """The masked language model of a folder or of the hub, on the CPU."""
    network, tokenizer = load_network(AutoModelForMaskedLM, name)
    if tokenizer.mask_token_id is None:
        raise BadInput(f"{name!r} has no mask token; conditional draws need a masked language model.")
    return Filler(name, network, tokenizer)
