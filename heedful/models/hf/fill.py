"""A masked language model that draws words for masked positions of a text."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float

from heedful.document import Pair
from heedful.errors import BadInput, Unsupported
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.hf.load import load_filler
from heedful.models.hf.masked_word import HfMaskedWord
from heedful.models.hf.text import read_text

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
    model: HfMaskedWord

    def distributions(self, text: str | Pair, n: int) -> Float[np.ndarray, "place token"]:
        """The probabilities of all tokens at the n mask tokens of a text."""
        document = read_text(self.model.tokenizer, text, self.model.room)
        if document.truncated:
            raise Unsupported(f"The text is too long: {self.name} reads {self.model.room:,} tokens; shorten it.")
        places = document.ids == self.model.tokenizer.mask_token_id
        if int(places.sum()) != n:
            raise Unsupported(f"The text contains {self.model.mask!r}, the mask token of {self.name}; remove it.")
        logits = self.model.all_outputs(document)[places].double().cpu()
        logits[:, ~torch.from_numpy(self.whole)] = -torch.inf
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
            return [[self._text(number) for number in column] for column in chosen.T.tolist()]

    @cached_property
    def whole(self) -> Bool[np.ndarray, "token"]:
        """Which tokens are a word by themselves."""
        pieces = self.model.named[: len(self.model.tokenizer)]
        marked = any(piece.startswith(_STARTS) for piece in pieces)
        whole = np.zeros(len(self.model.named), dtype=bool)
        with ONE_THREAD:
            texts = [self._text(number) for number in range(len(pieces))]
        for number, (piece, text) in enumerate(zip(pieces, texts, strict=True)):
            starts = piece.startswith(_STARTS) if marked else not piece.startswith("##")
            whole[number] = starts and bool(text) and "\ufffd" not in text and " " not in text
        whole[[number for number in self.model.tokenizer.all_special_ids if number < len(whole)]] = False
        return whole

    def _text(self, number: int) -> str:
        tokenizer: Any = self.model.tokenizer
        return tokenizer.decode([number]).strip()


@lru_cache(maxsize=2)
def filler_of(name: str) -> Filler:
    """The masked language model of a folder or of the hub, on the CPU."""
    network, tokenizer = load_filler(name)
    if tokenizer.mask_token_id is None:
        raise BadInput(f"{name!r} has no mask token; conditional draws need a masked language model.")
    return Filler(name, HfMaskedWord(network, tokenizer))
