"""WordPiece: words divided into the longest pieces of a vocabulary, with the characters that each piece covers."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import NamedTuple, final
from unicodedata import category, normalize

import numpy as np

from heedful.document import SPECIAL, Document, check_text
from heedful.document.alignment.token_text import words_of
from heedful.document.note import Note

SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[CUT]", "[MASK]")
"""Padding, unknown words, the start of every text, the place where a long text is cut, and removed words."""
PAD_ID, UNKNOWN_ID, START_ID, CUT_ID, MASK_ID = range(5)

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_PLAIN = re.compile(r"[\t\n\r -~]*")
_RUN = re.compile(r"[!-/:-@\[-`{-~]|[^\s!-/:-@\[-`{-~]+")
_LONGEST_WORD = 100


@final
class PieceSpan(NamedTuple):
    """A piece of a word: its id and the characters of the text that it covers."""

    id: int
    start: int
    end: int


@final
@dataclass(frozen=True)
class WordPieces:
    """A vocabulary of pieces; those that continue a word begin with ##, and the first five are special.

    The rules are those of BERT's uncased tokenizer (Devlin et al., 2019, arXiv:1810.04805): lower case without accents,
    every punctuation mark by itself, then the longest piece that fits, from left to right. Differs from the source: a
    line break `<br />` is white space, and ideographs are not separated.
    """

    pieces: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.pieces)

    def split(self, text: str) -> list[PieceSpan]:
        """The pieces of a text, in order."""
        read, origin = _as_read(text)
        pieces, pieces_of = [], self._pieces_of
        for run in _RUN.finditer(read):
            start = run.start()
            for number, length in pieces_of(run.group()):
                pieces.append(PieceSpan(number, origin[start], origin[start + length - 1] + 1))
                start += length
        return pieces

    def read(self, text: object, T_max: int) -> Document:
        """[CLS] and the pieces of a text; of a text that is too long the beginning and the end, with a note."""
        text = check_text(text)
        whole = self.split(text)
        head, tail = parts_kept(len(whole), T_max)
        cut = len(whole) - head - tail
        kept = whole[:head] + whole[len(whole) - tail :]
        if cut:
            kept.insert(head, PieceSpan(CUT_ID, kept[head - 1].end, kept[head - 1].end))
        ids = np.array([START_ID, *(piece.id for piece in kept)], dtype=np.int64)
        known, spans = ids != UNKNOWN_ID, ((0, 0), *((piece.start, piece.end) for piece in kept))
        surfaces = [
            self.pieces[number].removeprefix("##") if is_known else text[start:end]
            for number, is_known, (start, end) in zip(ids.tolist(), known, spans, strict=True)
        ]
        notes = []
        if cut:
            sentence = (
                f"Only the first {head:,} and the last {tail:,} of {len(whole):,} tokens were read; {cut:,} between"
            )
            notes.append(Note(f"{sentence} them were left out, since the model reads at most {T_max:,}.", "truncated"))
        if not known.all():
            shown = ", ".join(dict.fromkeys(s for s, is_known in zip(surfaces, known, strict=True) if not is_known))
            shown = shown if len(shown) <= 80 else shown[:80] + "…"
            sentence = f"{int((~known).sum())} of {head + tail} tokens are unknown to the model: {shown}"
            notes.append(Note(sentence, "unknown-words"))
        return Document(text, ids, tuple(surfaces), spans, _words(text, kept), known, tuple(notes))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {piece: number for number, piece in enumerate(self.pieces) if number >= len(SPECIAL_PIECES)}

    @cached_property
    def _pieces_of(self) -> Callable[[str], tuple[tuple[int, int], ...]]:
        """Id and length of each piece of a word; the common words of long texts are remembered."""
        return lru_cache(maxsize=1 << 16)(self._divided)

    def _divided(self, word: str) -> tuple[tuple[int, int], ...]:
        index, start, pieces = self._index, 0, []
        while start < len(word) <= _LONGEST_WORD:
            prefix = "##" if start else ""
            fitting = (end for end in range(len(word), start, -1) if prefix + word[start:end] in index)
            end = next(fitting, None)
            if end is None:
                break
            pieces.append((index[prefix + word[start:end]], end - start))
            start = end
        return tuple(pieces) if start == len(word) else ((UNKNOWN_ID, len(word)),)


def parts_kept(n_tokens: int, T_max: int) -> tuple[int, int]:
    """How many tokens of the beginning and of the end are read: all, or a third and two thirds of what fits."""
    if n_tokens < T_max:
        return n_tokens, 0
    head = (T_max - 2) // 3
    return head, T_max - 2 - head


def without_breaks(text: str) -> str:
    """The text with HTML line breaks as spaces of the same length."""
    return _BREAK.sub(lambda match: " " * len(match.group()), text) if "<" in text else text


def _as_read(text: str) -> tuple[str, range | list[int]]:
    """The text in lower case without accents, and for each of its characters the place it comes from."""
    text = without_breaks(text)
    if _PLAIN.fullmatch(text):
        return text.lower(), range(len(text))
    read = [_character(character) for character in text]
    return "".join(read), [place for place, some in enumerate(read) for _ in some]


@cache
def _character(character: str) -> str:
    """A character as it is read: control characters as nothing, punctuation outside of ASCII between spaces."""
    if character.isspace() and (character in "\t\n\r" or category(character) != "Cc"):
        return " "
    if category(character) in ("Cc", "Cf", "Co", "Cs") or character == "\ufffd":
        return ""
    plain = (part.lower() for part in normalize("NFD", character) if category(part) != "Mn")
    return "".join(f" {part} " if part > "~" and category(part[0])[0] == "P" else part for part in plain)


def _words(text: str, pieces: list[PieceSpan]) -> np.ndarray:
    """The word of each token, by the rules of `words_of`; words that share a piece are one."""
    of, last, number, words = words_of(without_breaks(text)), None, SPECIAL, [SPECIAL]
    for piece in pieces:
        if piece.id == CUT_ID:
            words.append(SPECIAL)
            continue
        number += of[piece.start] != last
        last = of[piece.end - 1]
        words.append(number)
    return np.array(words, dtype=np.int64)
