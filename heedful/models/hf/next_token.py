"""The names of next tokens: what a person types after a text to get that very token."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from heedful.document import Document
from heedful.errors import BadInput, HeedfulError
from heedful.models.attention_hook import ONE_THREAD
from heedful.target import Names

_NUMBERED = re.compile(r"(.*) \(id:(\d+)\)|id:(\d+)", re.DOTALL)
_TAIL = 200
"""The characters of the text before that are tokenized with a name; longer texts give the same tokens."""


def plain_ids(tokenizer: Any, text: str, target: bool = False) -> list[int]:
    """The tokens of a text alone, without special ones; `target` as in `read_text`."""
    options = {"text_target" if target else "text": text, "add_special_tokens": False, "verbose": False}
    # A tokenizer keeps the last call's options until the next call.
    with ONE_THREAD:
        return [int(number) for number in tokenizer(**options)["input_ids"]]


def surfaces_of(tokenizer: Any, n_tokens: int) -> tuple[str, ...]:
    """The characters that every token adds to a text, its space included.

    A decoder drops the space of a text's first token, so each is decoded after another one.
    """
    lead = tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
    rows = [[*lead, number] for number in range(n_tokens)]
    before = tokenizer.decode(lead, clean_up_tokenization_spaces=False)
    after = tokenizer.batch_decode(rows, clean_up_tokenization_spaces=False)
    return tuple(text.removeprefix(before) for text in after)


@final
@dataclass(frozen=True)
class Surfaces:
    """The characters of every token of a model, and the tokens of the same characters."""

    tokenizer: Any
    texts: Sequence[str]

    @cached_property
    def tokens(self) -> Mapping[str, list[int]]:
        """The tokens that add these characters."""
        by_text = defaultdict(list)
        for number, text in enumerate(self.texts):
            by_text[text].append(number)
        return by_text


@final
@dataclass(frozen=True)
class TokenNames(Names):
    """The names of tokens after a text; `before` is None where the text is not known yet.

    A name is what the token adds to the text: " ball" after "the red". A word may be given without its space; it is
    ambiguous if there is a token with the space and one without, unless the text ends in a space. Of several
    tokens with the same characters (SentencePiece has bytes beside letters) the one that the tokenizer gives is meant.
    Any token can be named by its number, as an int or as "id:8287".
    """

    surfaces: Surfaces
    before: str | None = None
    generated: bool = False
    """Whether the text before is in the language that an encoder-decoder generates."""

    def __len__(self) -> int:
        return len(self.surfaces.texts)

    def meanings(self, name: str) -> list[int]:
        """The tokens that the name may mean after this text."""
        numbered = _NUMBERED.fullmatch(name)
        if numbered and not self.surfaces.tokens.get(name):
            label, number = numbered[1], int(numbered[2] or numbered[3])
            return [number] if label is None or (number < len(self) and self._label(number) == label) else []
        glued = self._adding(name)
        if self.before == "" and (first := self._typed(name)) is not None:
            return [first]
        if self.before is not None and self.before[-1:].strip() == "" and glued:
            return glued
        spaced = self._adding(f" {name}") if name[:1].isalnum() or not glued else []
        return [*glued, *spaced] or self._in_vocabulary(name)

    def meanings_of_number(self, number: int) -> list[int]:
        """The token of that number."""
        return [number]

    def shown(self, index: int) -> str:
        """What the token adds to the text; with its number, where that alone means another token or none."""
        name = self.surfaces.texts[index]
        readable = bool(name) and "\ufffd" not in name
        return name if readable and self.meanings(name) == [index] else f"{self._label(index)} (id:{index})"

    def unknown(self, name: object) -> HeedfulError:
        """The error for a name that is not one token."""
        read = self._ids(str(name))
        pieces = ", ".join(repr(self.surfaces.texts[number]) for number in read[:8] if number < len(self))
        number = f" For token number {name} give an int, or id:{name}." if str(name).strip().isdecimal() else ""
        return BadInput(
            f"{name!r} is not one of the model's {len(self):,} tokens; it is read as {pieces or 'nothing'}.{number}"
        )

    def _adding(self, text: str) -> list[int]:
        """The tokens that add this text; only the one that the tokenizer gives, if it is among them."""
        tokens = self.surfaces.tokens.get(text, [])
        if len(tokens) > 1 and (typed := self._typed(text)) in tokens:
            return [typed]
        return list(tokens)

    def _typed(self, text: str) -> int | None:
        """The token that the tokenizer gives if the text is typed here, or None if that is not exactly one more."""
        before = (self.before or "")[-_TAIL:]
        known, more = self._ids(before), self._ids(before + text)
        return more[-1] if more and more[:-1] == known else None

    def _ids(self, text: str) -> list[int]:
        return plain_ids(self.surfaces.tokenizer, text, self.generated)

    def _in_vocabulary(self, name: str) -> list[int]:
        """The token that the vocabulary itself spells so, such as "▁ball" or "<0x2E>"."""
        number = self.surfaces.tokenizer.get_vocab().get(name)
        return [] if number is None or number >= len(self) else [int(number)]

    def _label(self, index: int) -> str:
        name = self.surfaces.texts[index]
        return name if name and "\ufffd" not in name else str(self.surfaces.tokenizer.convert_ids_to_tokens(index))


def text_before(document: Document) -> str:
    """The text before the next token, as far as it was read; of an encoder-decoder the start of the output."""
    own = np.ones_like(document.words, dtype=bool) if document.segments is None else document.segments == 1
    spans = [span for span, mine, word in zip(document.spans, own, document.words, strict=True) if mine and word >= 0]
    if not spans:
        return ""
    end = spans[-1][1] if document.truncated else len(document.text)
    return document.text[spans[0][0] : end]
