"""The characters and the word of each token; a tokenizer's offsets are checked against the text first."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Int

from heedful.document import SPECIAL
from heedful.document.alignment.matching import TextPart, match_in_order, match_offsets
from heedful.document.alignment.spans import collapse_spaces, spans_of_letters, split_evenly
from heedful.document.alignment.token_text import Span, readings_of, words_of

How = Literal["offsets", "characters", "pieces"]


@final
@dataclass(frozen=True)
class Alignment:
    """The characters and the word of each token, and how they were found.

    `spans` index into `join_texts(texts)`. A special token, white space, or a token that covers no character has an
    empty span. They are in order, and overlap only where several tokens make up one character. `pieces` are what the
    model reads, in lower case if it does. `words` count on across both texts of a pair; special tokens take the segment
    of the one before.
    """

    pieces: tuple[str, ...]
    spans: tuple[Span, ...]
    words: Int[np.ndarray, "token"]
    segments: Int[np.ndarray, "token"]
    how: How


def join_texts(texts: tuple[str, ...]) -> str:
    """The texts as one, with a line break between."""
    return "\n".join(texts)


def align(
    tokenizer: Any,
    ids: Sequence[int],
    texts: tuple[str, ...],
    special: Sequence[bool],
    offsets: Sequence[Span] | None,
    sequence: Sequence[int | None] | None,
) -> Alignment:
    """Spans and words of the tokens of a text, or of a pair of texts.

    The tokenizer's `offsets` are used if every token's decoded string equals the text there, up to case, accents and
    spaces, and no character between the first and the last token is left out ("offsets"). Otherwise the decoded strings
    are searched one after another, and characters between two that were found go to the tokens between ("characters").
    If most are not found, the text is divided evenly, and every token but white space is a word ("pieces").

    A word is a run of letters, digits and marks with inner apostrophes and hyphens; every other character, ideograph,
    kana or emoji is a word by itself. Words that share a token are one word. White space, or a token that covers no
    character, belongs to the next word of its text, with an empty span at its beginning; after the last word, to that
    word, at its end. In a text without words such tokens make one empty word. The unknown token must not be marked as
    special.
    """
    pieces = [str(name) for name in tokenizer.convert_ids_to_tokens([int(number) for number in ids])]
    unknown = [number == tokenizer.unk_token_id for number in ids]
    parts = [
        TextPart(text, start, tokens, readings_of(tokenizer, [pieces[t] for t in tokens], [unknown[t] for t in tokens]))
        for text, start, tokens in _shares(texts, special, sequence)
    ]
    letters, how = _match(parts, offsets)
    ordered = _in_order(_spans_and_surfaces(parts, letters, how, pieces))
    segments = _segments(texts, special, sequence, ordered)
    visible = {part.tokens[t] for part in parts for t in part.visible_tokens}
    each_a_word = [t if t in visible else None for t in range(len(ids))]
    keys = each_a_word if how == "pieces" else _merged(join_texts(texts), ordered)
    return Alignment(tuple(pieces), ordered, _numbered(keys, segments, np.logical_not(special)), segments, how)


def _match(parts: list[TextPart], offsets: Sequence[Span] | None) -> tuple[list[dict[int, Span]], How]:
    """For each text the letters of its readings, and how they were found."""
    at_offsets = [None if offsets is None else match_offsets(part, [offsets[t] for t in part.tokens]) for part in parts]
    right = [spans for spans in at_offsets if spans is not None]
    how: How = "offsets" if len(right) == len(parts) else "characters"
    letters = right if how == "offsets" else [match_in_order(part) for part in parts]
    lost = [
        number not in spans
        for part, spans in zip(parts, letters, strict=True)
        for number, reading in enumerate(part.readings)
        if reading.letters
    ]
    return letters, "pieces" if 2 * sum(lost) > len(lost) else how


def _spans_and_surfaces(
    parts: list[TextPart], letters: list[dict[int, Span]], how: How, pieces: list[str]
) -> list[Span | None]:
    """The span of each token, None if it is special; `pieces` get what the model reads."""
    spans: list[Span | None] = [None] * len(pieces)
    for part, spans_of_part in zip(parts, letters, strict=True):
        own = split_evenly(part) if how == "pieces" else spans_of_letters(part, spans_of_part)
        for t, (start, end), (low, high) in zip(part.tokens, own, collapse_spaces(part, own), strict=True):
            spans[t] = (part.start + low, part.start + high)
            pieces[t] = part.text[start:end]
        for reading in part.readings:
            if reading.last == reading.first + 1 and (reading.letters or reading.is_space):
                pieces[part.tokens[reading.first]] = reading.surface.strip() or reading.surface
    return spans


def _segments(
    texts: tuple[str, ...],
    special: Sequence[bool],
    sequence: Sequence[int | None] | None,
    spans: tuple[Span, ...],
) -> Int[np.ndarray, "token"]:
    """For each token 0, or 1 if it belongs to the second text; special tokens go with the token before."""
    second = [start > len(texts[0]) for start, _ in spans] if sequence is None else [s == 1 for s in sequence]
    segments = np.zeros(len(special), dtype=np.int64)
    for t, is_special in enumerate(special):
        segments[t] = second[t] if not is_special else segments[t - 1] if t else 0
    return segments


def _shares(
    texts: tuple[str, ...], special: Sequence[bool], sequence: Sequence[int | None] | None
) -> list[tuple[str, int, list[int]]]:
    """Each text, its start in the joined text, and its tokens."""
    real = [t for t, is_special in enumerate(special) if not is_special]
    if len(texts) == 1:
        return [(texts[0], 0, real)]
    if sequence is not None:
        second = [sequence[t] == 1 for t in real]
    else:
        breaks = [b for a, b in pairwise(real) if b > a + 1]
        if len(breaks) != 1 or not all(text.strip() for text in texts):
            return [(join_texts(texts), 0, real)]
        second = [t >= breaks[0] for t in real]
    halves = [[t for t, is_second in zip(real, second, strict=True) if is_second == half] for half in (False, True)]
    return [(texts[0], 0, halves[0]), (texts[1], len(texts[0]) + 1, halves[1])]


def _in_order(spans: list[Span | None]) -> tuple[Span, ...]:
    """The spans in order, with an empty one for special tokens."""
    ordered, last = [], (0, 0)
    for span in spans:
        start, end = span or (last[1], last[1])
        last = (max(start, last[0] if start < end else last[1]), max(end, last[1]))
        ordered.append(last)
    return tuple(ordered)


def _merged(text: str, spans: tuple[Span, ...]) -> list[int | None]:
    """For each token the word that it touches, or None; words that share a token become one."""
    of = words_of(text)
    with_last = np.zeros(max(of, default=SPECIAL) + 1, dtype=bool)
    touched = [[word for word in of[start:end] if word != SPECIAL] for start, end in spans]
    for words in touched:
        with_last[min(words, default=0) + 1 : max(words, default=0) + 1] = True
    merged = np.cumsum(~with_last).tolist()
    return [merged[words[0]] if words else None for words in touched]


def _numbered(
    keys: list[int | None], segments: Int[np.ndarray, "token"], real: Bool[np.ndarray, "token"]
) -> Int[np.ndarray, "token"]:
    """The word of each token that is not special, in reading order.

    Tokens with the same key are one word. A token without a key goes with the next token of its text that has one, or
    else with the last.
    """
    tokens, texts, keys = np.flatnonzero(real).tolist(), segments.tolist(), list(keys)
    for order in (tokens[::-1], tokens):
        near: dict[int, int | None] = {}
        for t in order:
            keys[t] = near[texts[t]] = near.get(texts[t]) if keys[t] is None else keys[t]
    numbers, number, first = np.full(len(keys), SPECIAL, dtype=np.int64), -1, {}
    for t in tokens:
        key = -1 - texts[t] if keys[t] is None else keys[t]
        # A word extends to its last token, whatever is in between.
        number = int(numbers[first[key]]) if key in first else number + 1
        numbers[first.setdefault(key, t) : t + 1] = number
    numbers[~real] = SPECIAL
    return numbers
