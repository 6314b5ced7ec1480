"""Characters and words of a tokenizer's tokens, believed only as far as the text bears them out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, final

import numpy as np
from jaxtyping import Bool, Int

from heedful.document import SPECIAL
from heedful.document.alignment.matching import Part, verified, walked
from heedful.document.alignment.spans import evenly, settled, spread
from heedful.document.alignment.token_text import Span, readings_of, words_of


@final
@dataclass(frozen=True)
class Alignment:
    """The characters and the word of each token, and the way they were found.

    `spans` index into `joined(texts)`; a special token, one of white space, or one that stands for no character has an
    empty one. They are in order, and overlap only where several tokens make up one character. `pieces` are what the
    model reads, in lower case if it does. `words` count on across both texts of a pair; special tokens take the segment
    of the one before.
    """

    pieces: tuple[str, ...]
    spans: tuple[Span, ...]
    words: Int[np.ndarray, "token"]
    segments: Int[np.ndarray, "token"]
    how: Literal["offsets", "characters", "pieces"]


def joined(texts: tuple[str, ...]) -> str:
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

    The claimed `offsets` stand if every token's decoded string is, but for case, accents and spaces, what the text has
    there, and nothing between the first token and the last is left out ("offsets"). Otherwise the decoded strings are
    looked for one after another, and what lies between two found ones belongs to the tokens between ("characters"). If
    most are not found, the text is shared out evenly, and every token but white space is a word ("pieces").

    A word is a run of letters, digits and marks with inner apostrophes and hyphens; every other character, ideograph,
    kana or emoji is one by itself. Words that share a token are one word. A token of white space, or one that stands
    for no character, belongs to the next word of its text, at whose beginning its empty span lies; after the last word,
    to that one, at whose end it lies. Only a text without words makes one word, an empty one, of such tokens. The
    unknown token must not be called special.
    """
    pieces = [str(name) for name in tokenizer.convert_ids_to_tokens([int(number) for number in ids])]
    unknown = [number == tokenizer.unk_token_id for number in ids]
    parts = [
        Part(text, start, tokens, readings_of(tokenizer, [pieces[t] for t in tokens], [unknown[t] for t in tokens]))
        for text, start, tokens in _shares(texts, special, sequence)
    ]
    claimed = [None if offsets is None else verified(part, [offsets[t] for t in part.tokens]) for part in parts]
    believed = [found for found in claimed if found is not None]
    how = "offsets" if len(believed) == len(parts) else "characters"
    found = believed if how == "offsets" else [walked(part) for part in parts]
    lost = [n not in f for part, f in zip(parts, found, strict=True) for n, r in enumerate(part.readings) if r.letters]
    how = "pieces" if 2 * sum(lost) > len(lost) else how

    spans: list[Span | None] = [None] * len(ids)
    for part, places in zip(parts, found, strict=True):
        own = evenly(part) if how == "pieces" else spread(part, places)
        for t, (start, end), (low, high) in zip(part.tokens, own, settled(part, own), strict=True):
            spans[t] = (part.start + low, part.start + high)
            pieces[t] = part.text[start:end]
        for reading in part.readings:
            if reading.last == reading.first + 1 and (reading.letters or reading.blank):
                pieces[part.tokens[reading.first]] = reading.surface.strip() or reading.surface
    ordered = _in_order(spans)
    second = [start > len(texts[0]) for start, _ in ordered] if sequence is None else [s == 1 for s in sequence]
    segments = np.zeros(len(ids), dtype=np.int64)
    for t, is_special in enumerate(special):
        segments[t] = second[t] if not is_special else segments[t - 1] if t else 0
    loud = {part.tokens[t] for part in parts for t in part.loud}
    alone = [t if t in loud else None for t in range(len(ids))]
    keys = alone if how == "pieces" else _merged(joined(texts), ordered)
    return Alignment(tuple(pieces), ordered, _numbered(keys, segments, np.logical_not(special)), segments, how)


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
            return [(joined(texts), 0, real)]
        second = [t >= breaks[0] for t in real]
    halves = [[t for t, is_second in zip(real, second, strict=True) if is_second == half] for half in (False, True)]
    return [(texts[0], 0, halves[0]), (texts[1], len(texts[0]) + 1, halves[1])]


def _in_order(spans: list[Span | None]) -> tuple[Span, ...]:
    """The spans with an empty one for special tokens, none before the one that it follows."""
    ordered, last = [], (0, 0)
    for span in spans:
        start, end = span or (last[1], last[1])
        last = (max(start, last[0] if start < end else last[1]), max(end, last[1]))
        ordered.append(last)
    return tuple(ordered)


def _merged(text: str, spans: tuple[Span, ...]) -> list[int | None]:
    """For each token the word that it touches, those that share a token made one; nothing if it touches none."""
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

    Tokens of one key are one word; one without a key goes with the next of its text that has one, or with the last.
    """
    tokens, texts, keys = np.flatnonzero(real).tolist(), segments.tolist(), list(keys)
    for order in (tokens[::-1], tokens):
        near: dict[int, int | None] = {}
        for t in order:
            keys[t] = near[texts[t]] = near.get(texts[t]) if keys[t] is None else keys[t]
    numbers, number, first = np.full(len(keys), SPECIAL, dtype=np.int64), -1, {}
    for t in tokens:
        key = -1 - texts[t] if keys[t] is None else keys[t]
        # A word goes on until its last token, whatever lies between.
        number = int(numbers[first[key]]) if key in first else number + 1
        numbers[first.setdefault(key, t) : t + 1] = number
    numbers[~real] = SPECIAL
    return numbers
