"""The words that a feature is said to stand for: the tokens that write them, and how often a text contains them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, final

import torch

from heedful.document import Document
from heedful.errors import BadInput, in_short
from heedful.features.dictionary import Dictionary
from heedful.features.reading.raised import readout_of
from heedful.models.language import LanguageModel

WORD = re.compile(r"\w+(?:['’]\w+)*")
"""A word of a text."""
_RAISED = 5
"""How many of the words that a feature raises most are its label, if no words are given."""


@final
@dataclass(frozen=True)
class Label:
    """Words in lower case, and the tokens of the vocabulary that are one of them as a whole, whatever their case."""

    words: tuple[str, ...]
    tokens: tuple[int, ...]
    lost: tuple[str, ...] = ()
    """The words that are no whole token."""
    source: Literal["given", "logit lens"] = "given"

    def share(self, text: str) -> float:
        """The share of the words of a text that are labelled; 0 for a text without words."""
        words = words_in(text)
        return sum(word in self.words for word in words) / max(1, len(words))


def words_in(text: str) -> list[str]:
    """The words of a text in lower case."""
    return WORD.findall(text.casefold())


def repetition(text: str) -> float | None:
    """1 − distinct-2: the share of neighbouring pairs of words that occurred before; None below two words.

    Reference: Li et al., NAACL 2016, arXiv:1510.03055, Section 5.2.
    """
    words = words_in(text)
    pairs = [*pairwise(words)]
    return 1 - len({*pairs}) / len(pairs) if pairs else None


def label_of(model: LanguageModel, words: Any) -> Label:
    """The label of these words, at least one of which must be a token; a text has words separated by commas."""
    given = words.split(",") if isinstance(words, str) else words
    listed = isinstance(given, list | tuple) and len(given) > 0 and all(isinstance(word, str) for word in given)
    if not listed:
        raise BadInput(f'Give the words of a label as a list, such as ["happy", "glad"]; {in_short(words)} was given.')
    plain = tuple(dict.fromkeys(word.strip().casefold() for word in given))
    if wrong := [word for word in plain if not WORD.fullmatch(word)]:
        raise BadInput(f"A label consists of single words of letters; {in_short(wrong[0])} is none.")
    by_word = {word: _tokens_of(model, word) for word in plain}
    tokens = tuple(token for own in by_word.values() for token in own)
    if not tokens:
        raise BadInput(f"No word of the label is a whole token of the model: {', '.join(plain)}. Give other words.")
    return Label(plain, tokens, tuple(word for word, own in by_word.items() if not own))


def raised_label(dictionary: Dictionary, feature: int, model: LanguageModel, documents: Sequence[Document]) -> Label:
    """The five words whose tokens the feature's direction raises most (logit lens); other tokens are left out.

    The lens is that of `heedful.features.describe`, at the tokens of these documents.
    """
    lens = readout_of(dictionary, model, documents)
    if lens.of is None:
        raise BadInput(f"{lens.about} Give the words of its label with words=.")
    effects = lens.of(dictionary.W_dec[feature][None])[0][0]
    words: dict[str, None] = {}
    for token in torch.argsort(effects, descending=True, stable=True)[: int((effects > 0).sum())].tolist():
        surface = model.classes[token]
        # Without a space before it a token may be the end of a word.
        if surface[:1] == " " and WORD.fullmatch(surface[1:]) and len(surface) > 2:
            words[surface[1:].casefold()] = None
        if len(words) == _RAISED:
            break
    if not words:
        raise BadInput("No token that the feature raises is a whole word; give the words of its label with words=.")
    return replace(label_of(model, list(words)), source="logit lens")


def _tokens_of(model: LanguageModel, word: str) -> list[int]:
    """The tokens that are the word with a space before it; where there are none, those that are the word alone."""
    same = [token for token, surface in enumerate(model.classes) if surface.strip().casefold() == word]
    return [token for token in same if model.classes[token][:1].isspace()] or same
