"""The "basic English" word splitter and a vocabulary, for the models that heedful trains."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Int

from heedful.document import SPECIAL, Document, check_text
from heedful.document.note import Note
from heedful.errors import BadInput

CLS, UNK = 0, 1
SPECIAL_WORDS = ("[cls]", "[unk]")
_WORD = re.compile(r"['.,()!?]|[^;:\s'.,()!?]+")
_LINE_BREAK = re.compile(r'<"*b"*r"* "*/"*>')


@final
class Word(NamedTuple):
    """A lower-cased word and the characters of the original text it came from."""

    text: str
    start: int
    end: int


def split_words(text: str, most: int | None = None) -> list[Word]:
    """Words of a text under the "basic English" rules, with their spans; at most `most` of them.

    Lower-case; each of ' . , ( ) ! ? is a word of its own; " is dropped (so `a"b` is one word); `;`, `:` and `<br />`
    separate words. The rules are those of torchtext's `basic_english`, which the authors used; the spans are ours.
    """
    lowered = text.lower()
    # A few capitals, such as the dotted İ, become two characters in lower case.
    same = len(lowered) == len(text)
    origin = range(len(text)) if same else [i for i, character in enumerate(text) for _ in character.lower()]
    words = []
    for match in _WORD.finditer(_without_line_breaks(lowered)):
        if len(words) == most:
            break
        raw = match.group()
        start, end = match.span()
        word = raw
        if '"' in raw:
            word = raw.replace('"', "")
            start, end = start + len(raw) - len(raw.lstrip('"')), end - len(raw) + len(raw.rstrip('"'))
        if word:
            words.append(Word(word, origin[start], origin[end - 1] + 1))
    return words


def split_plain(text: str) -> list[str]:
    """The same words without their spans, several times faster, for counting and for prediction in bulk."""
    return _WORD.findall(_without_line_breaks(text.lower()).replace('"', ""))


def _without_line_breaks(lowered: str) -> str:
    # Quotes are removed before line breaks are matched, so a break may contain them. The length is kept for the spans.
    return _LINE_BREAK.sub(lambda match: " " * len(match.group()), lowered) if "<" in lowered else lowered


@final
@dataclass(frozen=True)
class Vocabulary:
    """The words of a model by decreasing frequency, after its special tokens [cls] and [unk]."""

    words: tuple[str, ...]

    @cached_property
    def index(self) -> dict[str, int]:
        """The id of each word. Special tokens are not words, even if a text contains their names."""
        return {word: number for number, word in enumerate(self.words) if number > UNK}

    def ids(self, words: Iterable[str]) -> Int[np.ndarray, "token"]:
        """The ids of words; an unknown word has the id of [unk]."""
        index = self.index
        return np.array([index.get(word, UNK) for word in words], dtype=np.int64)

    def id_of(self, word: str) -> int:
        """The id of a word that replaces others; an unknown word is refused."""
        if word not in self.index:
            raise BadInput(f"{word!r} is not in the model's vocabulary, so it cannot replace other words.")
        return self.index[word]

    def __len__(self) -> int:
        return len(self.words)


def build_vocabulary(texts: Iterable[str], min_count: int = 1) -> Vocabulary:
    """Every word seen at least `min_count` times, the most frequent first, ties in alphabetical order."""
    counts = Counter(word for text in texts for word in split_plain(text))
    frequent = sorted(
        (word for word, count in counts.items() if count >= min_count), key=lambda word: (-counts[word], word)
    )
    return Vocabulary((*SPECIAL_WORDS, *frequent))


def read_words(text: object, vocabulary: Vocabulary, T_max: int) -> Document:
    """[cls], then at most T_max − 1 words; a longer text is truncated, with a note."""
    text = check_text(text)
    room = T_max - 1
    read = split_words(text, room)
    left = len(split_plain(text)) - room if len(read) == room else 0
    ids = np.concatenate([[CLS], vocabulary.ids(word.text for word in read)])
    known = ids != UNK
    notes = []
    if left > 0:
        cut = f"Only the first {room:,} words were read; the last {left:,} are beyond the model's limit."
        notes.append(Note(cut, "truncated"))
    if not known.all():
        unknown_words = ", ".join(dict.fromkeys(w.text for w, k in zip(read, known[1:], strict=True) if not k))
        shown = unknown_words if len(unknown_words) <= 80 else unknown_words[:80] + "…"
        unknown = f"{int((~known).sum())} of {len(read)} words are unknown to the model: {shown}"
        notes.append(Note(unknown, "unknown-words"))
    return Document(
        text=text,
        ids=ids,
        pieces=("[cls]", *(word.text for word in read)),
        spans=((0, 0), *((word.start, word.end) for word in read)),
        words=np.arange(len(read) + 1) + SPECIAL,
        known=known,
        notes=tuple(notes),
    )
