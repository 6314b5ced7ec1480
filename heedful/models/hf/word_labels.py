"""Hugging Face models that give every word a label, such as its part of speech or the kind of name it belongs to."""

from dataclasses import replace
from typing import Any, final

import numpy as np
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import Document
from heedful.errors import BadInput
from heedful.models import AtPlace, Model
from heedful.models.hf.at_places import HfAtPlaces, placed_at
from heedful.models.hf.text import read_text
from heedful.target import ClassNames


@final
class HfWordLabels(HfAtPlaces, AtPlace):
    """A token classifier, of which the label of one word is explained: the target "Paris=B-LOC" names both.

    "Paris" alone is the label that is predicted there, "Paris#2=B-LOC" the second occurrence, and "#5=B-LOC" the fifth
    word of any text. A word is read at its first token, as it is trained to be. Where no word is named, as for
    `heedful.heads`, the outputs are the mean over all words.
    """

    reads = "the first token of the word that the target names"
    outputs = "labels"
    word: str = ""
    """The word that was named; empty for all words."""

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        config: Any = network.config
        labels = tuple(str(config.id2label[number]) for number in sorted(config.id2label))
        self.prepare(network, tokenizer, labels, "a b c d e f")

    def encode(self, text: object) -> Document:
        """The text as this model reads it, with the first token of the word that is read."""
        document = read_text(self.tokenizer, text, self.room)
        firsts = [_first_token(document, word) for word in range(len(document.word_texts))]
        read = [firsts[_place_of(document.word_texts, self.word)]] if self.word else firsts or [0]
        return replace(document, attached=placed_at(document, read))

    def aimed(self, target: Any, against: object) -> tuple[Model, Any]:  # noqa: ARG002
        """The model read at the word that the target names, and the label's number."""
        if self.origin is not None and not isinstance(target, str):
            return self, target
        if not isinstance(target, str):
            label = self.named[-1]
            raise BadInput(f"This model labels words; name one: target='Paris={label}', or 'Paris' for its own label.")
        word, number = self._split(target)
        made = self.at(word, tuple(f"{word}={own}" for own in self.named))
        made.word = word
        return made, number

    def _split(self, target: str) -> tuple[str, int | None]:
        """The word of a target and the number of its label, which may contain "=" as the word may."""
        places = [place for place, character in enumerate(target) if character == "="]
        if not target or places == [0]:
            raise BadInput(f"{target!r} names no word; write the word before its label, as in 'Paris{target}'.")
        if not places:
            return target, None
        names = ClassNames(self.named)
        for place in filter(None, places):
            if numbers := names.meanings(target[place + 1 :]):
                return target[:place], numbers[0]
        raise names.unknown(target[places[-1] + 1 :])

    def token_outputs(self, output: Any) -> Float[Tensor, "batch token output"]:
        """The logits of the labels at every token."""
        return output.logits

    def picked(self, rows: Float[Tensor, "batch place output"]) -> Float[Tensor, "batch class"]:
        """The logits of the labels at the word."""
        return rows[:, 0]


def _first_token(document: Document, word: int) -> int:
    """The first token of a word that covers a character."""
    own = np.flatnonzero(document.words == word).tolist()
    return next((t for t in own if document.spans[t][0] < document.spans[t][1]), own[0])


def _place_of(words: tuple[str, ...], name: str) -> int:
    """The word of that name, "name#2" for its second occurrence, or "#5" for the fifth word."""
    places = [place for place, word in enumerate(words) if word == name]
    if len(places) > 1:
        raise BadInput(f"{name!r} occurs {len(places)} times; name one: {name}#1 to {name}#{len(places)}.")
    stem, mark, number = name.rpartition("#")
    if not places and mark and number.isdecimal():
        every = [place for place, word in enumerate(words) if stem in ("", word)]
        places = every[int(number) - 1 : int(number)] if int(number) else []
    if not words:
        raise BadInput("The text contains no words; give at least one.")
    if not places:
        listed = ", ".join(map(repr, words[:12])) + (", …" if len(words) > 12 else "")
        raise BadInput(f"The text has no word {name!r}; its words are {listed}.")
    return places[0]
