"""Hugging Face models that fill in a missing word, such as BERT before it is tuned; the classes are the tokens."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, HeedfulError
from heedful.models.attention_hook import ONE_THREAD
from heedful.models.hf.at_places import HfAtPlaces, placed_at
from heedful.models.hf.next_token import plain_ids
from heedful.models.hf.text import read_text
from heedful.models.language import FillsIn
from heedful.target import Names

_NUMBERED = re.compile(r"(?:.* \()?id:(\d+)\)?", re.DOTALL)
_AROUND = 200
"""The characters on either side that are tokenized with a name."""


@final
class HfMaskedWord(HfAtPlaces, FillsIn):
    """A masked language model; its outputs are the logits of all tokens at the one mask token of the text.

    The mask is no unit and is never removed. Words that are removed become mask tokens too, unless another word
    replaces them; the output is still read at the one of the text.
    """

    reads = "the mask token of the text"
    outputs = "tokens"

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.mask = str(tokenizer.mask_token or "")
        if not self.mask:
            raise BadInput("The tokenizer has no mask token, so no word can be missing; set its mask_token.")
        self.n_logits = int(network.config.get_text_config().vocab_size)
        names = tokenizer.convert_ids_to_tokens(list(range(self.n_logits)))
        self.prepare(network, tokenizer, tuple(map(str, names)), f"a b {self.mask} c d")

    def encode(self, text: object) -> Document:
        """The text as this model reads it; its mask token belongs to no word."""
        document = read_text(self.tokenizer, text, self.room)
        places = np.flatnonzero(document.ids == self.tokenizer.mask_token_id)
        if len(places) != 1:
            raise BadInput(f"The text must have one {self.mask}, where a word is missing; {len(places)} were read.")
        words = np.where(document.ids == self.tokenizer.mask_token_id, SPECIAL, document.words)
        numbers = np.unique(words[words >= 0], return_inverse=True)[1]
        words[words >= 0] = numbers
        return replace(document, words=words, attached=placed_at(document, places.tolist()))

    def masked_copies(self, text: object) -> tuple[list[int], list[Document]]:
        """The tokens of a text without special ones, and a copy of the text with each of them masked and read."""
        document = read_text(self.tokenizer, text, self.room)
        if document.truncated:
            raise BadInput("A text is longer than the model's limit; shorten it.")
        places, copies = np.flatnonzero(document.words >= 0).tolist(), []
        for place in places:
            ids = document.ids.copy()
            ids[place] = self.tokenizer.mask_token_id
            copies.append(replace(document, ids=ids, attached=placed_at(document, [place])))
        return document.ids[places].tolist(), copies

    def target_names(self, document: Document | None) -> "MaskedNames":
        """The names of the tokens where the word is missing."""
        left, _, right = (f"a {self.mask} a" if document is None else document.text).partition(self.mask)
        return MaskedNames(self.tokenizer, self.named, left[-_AROUND:], right[:_AROUND])

    def token_outputs(self, output: Any) -> Float[Tensor, "batch token output"]:
        """The logits of all tokens at every token."""
        return output.logits

    def picked(self, rows: Float[Tensor, "batch place output"]) -> Float[Tensor, "batch class"]:
        """The logits at the mask."""
        return rows[:, 0]


@final
@dataclass(frozen=True)
class MaskedNames(Names):
    """The names of the tokens at the mask: the word that the tokenizer reads there as that one token.

    Any token can be named as the vocabulary spells it, such as "##ing", or by its number, as an int or "id:8287".
    """

    tokenizer: Any
    pieces: Sequence[str]
    left: str
    right: str

    def __len__(self) -> int:
        return len(self.pieces)

    def meanings(self, name: str) -> list[int]:
        """The token that the name is at the mask, or else in the vocabulary."""
        read = self._read(name)
        if len(read) == 1 and read[0] != self.tokenizer.unk_token_id:
            return read
        spelt, numbered = self.tokenizer.get_vocab().get(name), _NUMBERED.fullmatch(name)
        return [spelt] if spelt is not None else [int(numbered[1])] if numbered else []

    def meanings_of_number(self, number: int) -> list[int]:
        """The token of that number."""
        return [number]

    def shown(self, index: int) -> str:
        """The word; where that means another token or none, the vocabulary's spelling with the number."""
        with ONE_THREAD:
            word = str(self.tokenizer.decode([index])).strip()
        for name in (word, self.pieces[index]):
            if name and "\ufffd" not in name and self.meanings(name) == [index]:
                return name
        return f"{self.pieces[index]} (id:{index})"

    def unknown(self, name: object) -> HeedfulError:
        """The error for a name that is not one token."""
        with ONE_THREAD:
            pieces = self.tokenizer.convert_ids_to_tokens(self._read(str(name))[:8])
        return BadInput(f"{name!r} is not one token at the mask; it is read as {', '.join(pieces) or 'nothing'}.")

    def _read(self, name: str) -> list[int]:
        """The tokens that the name is between what stands before and behind it."""
        whole, around = (
            plain_ids(self.tokenizer, self.left + word + self.right) for word in (name, self.tokenizer.mask_token)
        )
        n = around.index(self.tokenizer.mask_token_id)
        before, after = around[:n], around[n + 1 :]
        if whole[:n] != before or whole[len(whole) - len(after) :] != after:
            return plain_ids(self.tokenizer, name)
        return whole[n : len(whole) - len(after)]
