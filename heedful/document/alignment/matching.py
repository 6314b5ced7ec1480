"""Finds the letters of tokens in their text: at the tokenizer's offsets, or by searching from left to right."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from heedful.document.alignment.token_text import Reading, Span, fold, letters_of, words_of

_PROBE = 12
_REACH = 16


@final
@dataclass(frozen=True)
class TextPart:
    """One text of the input, where it starts in the joined text, and its tokens."""

    text: str
    start: int
    tokens: list[int]
    readings: list[Reading]

    @cached_property
    def letters(self) -> str:
        """The comparable letters of the text."""
        return fold(self.text)

    @cached_property
    def places(self) -> list[int]:
        """For each letter, the character it comes from."""
        return [place for place, character in enumerate(self.text) for _ in letters_of(character)]

    @cached_property
    def words(self) -> list[int]:
        """For each character, its word; −1 for white space."""
        return words_of(self.text)

    @cached_property
    def letter_readings(self) -> list[int]:
        """The readings that cover letters, unreadable ones included."""
        return [number for number, reading in enumerate(self.readings) if reading.letters or reading.unreadable]

    @cached_property
    def visible_tokens(self) -> list[int]:
        """The tokens of this text that are not white space, by number."""
        return [t for reading in self.readings if not reading.is_space for t in range(reading.first, reading.last)]

    @cached_property
    def chunks(self) -> list[int]:
        """For each character, the run between white space that it belongs to."""
        return np.cumsum([character.isspace() for character in self.text]).tolist()


def match_offsets(part: TextPart, claims: list[Span]) -> dict[int, Span] | None:
    """The span of letters of each reading at the offsets that the tokenizer gives; None if one of them is wrong."""
    spans: dict[int, Span] = {}
    places, cursor = part.places, 0
    for number in part.letter_readings:
        reading = part.readings[number]
        start, end = claims[reading.first][0], claims[reading.last - 1][1]
        low, high = bisect_left(places, start), bisect_left(places, end)
        # Several tokens may make up one character (ß is ss), so the start counts only as far as the character.
        begin = max(low, cursor) if reading.letters else low
        stop = begin + len(reading.letters) if reading.letters else high
        if not 0 <= start < end <= len(part.text) or stop > high or (spans and begin != cursor):
            return None
        if reading.letters and part.letters[begin:stop] != reading.letters:
            return None
        if begin < stop and (places[begin] != places[low] or places[stop - 1] != places[high - 1]):
            return None
        spans[number], cursor = (begin, stop), stop
    return spans


def match_in_order(part: TextPart) -> dict[int, Span]:
    """The span of letters of each reading that is found when the text is read from left to right."""
    spans: dict[int, Span] = {}
    numbers = part.letter_readings
    at, cursor = 0, 0
    while at < len(numbers):
        letters = part.readings[numbers[at]].letters
        # The first token need not be at the start of the text, which may have been truncated.
        if at == 0 or not letters or not part.letters.startswith(letters, cursor):
            step = _next(part, numbers[at:], cursor)
            if step is None:
                break
            at, cursor = at + step[0], step[1]
            letters = part.readings[numbers[at]].letters
        spans[numbers[at]] = (cursor, cursor + len(letters))
        at, cursor = at + 1, cursor + len(letters)
    return spans


def _next(part: TextPart, numbers: list[int], cursor: int) -> tuple[int, int] | None:
    """How many readings to skip, and where the next one begins, so that the fewest letters are skipped."""
    best: tuple[int, int, int] | None = None
    for length in (_PROBE, 1):
        skipped, n_unreadable = 0, 0
        for skip, number in enumerate(numbers[:_REACH]):
            reading = part.readings[number]
            if reading.letters and (best is None or skipped < best[0]):
                probe = ""
                for following in numbers[skip:]:
                    if not part.readings[following].letters or len(probe) >= length:
                        break
                    probe += part.readings[following].letters
                place = _place(part, probe, cursor, n_unreadable, reading.surface[0].isspace())
                cost = skipped + place - cursor
                if place >= 0 and (best is None or cost < best[0]):
                    best = (cost, skip, place)
                # A long match that skips only unreadable tokens is better than a short one nearby.
                if place >= 0 and skipped == 0 and length == _PROBE:
                    return skip, place
            skipped, n_unreadable = skipped + len(reading.letters), n_unreadable + reading.unreadable
    return best[1:] if best else None


def _place(part: TextPart, letters: str, cursor: int, n_unreadable: int, spaced: bool) -> int:
    """The first place of the letters that leaves one letter for each unreadable token before them."""
    if n_unreadable and part.letters.startswith(letters, cursor):
        # What is unknown may be a tab or a mark, and leave no letter.
        start = part.places[cursor - 1] + 1 if cursor else 0
        if part.text[start : part.places[cursor]].strip(" "):
            return cursor
    first = place = part.letters.find(letters, cursor + n_unreadable)
    # After an unknown word, a token that follows a space is the beginning of one if it can be.
    while n_unreadable and spaced and place > 0:
        if part.words[part.places[place]] != part.words[part.places[place - 1]]:
            return place
        place = part.letters.find(letters, place + 1)
    return first
