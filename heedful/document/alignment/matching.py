"""The letters of tokens in the letters of their text: where offsets say they are, or where reading finds them."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from heedful.document.alignment.token_text import Reading, Span, folded, letters_of, words_of

_PROBE = 12
_REACH = 16


@final
@dataclass(frozen=True)
class Part:
    """A text, where it starts in the joined one, and the tokens that were made of it."""

    text: str
    start: int
    tokens: list[int]
    readings: list[Reading]

    @cached_property
    def letters(self) -> str:
        return folded(self.text)

    @cached_property
    def places(self) -> list[int]:
        """For each letter the character it comes from."""
        return [place for place, character in enumerate(self.text) for _ in letters_of(character)]

    @cached_property
    def words(self) -> list[int]:
        return words_of(self.text)

    @cached_property
    def voiced(self) -> list[int]:
        """The readings that stand for letters."""
        return [number for number, reading in enumerate(self.readings) if reading.letters or reading.dark]

    @cached_property
    def loud(self) -> list[int]:
        """The places, among this text's tokens, of those that are not white space."""
        return [t for reading in self.readings if not reading.blank for t in range(reading.first, reading.last)]

    @cached_property
    def chunks(self) -> list[int]:
        return np.cumsum([character.isspace() for character in self.text]).tolist()


def verified(part: Part, claims: list[Span]) -> dict[int, Span] | None:
    """The letters of each reading where the offsets say they are, or nothing if one of them is wrong."""
    found: dict[int, Span] = {}
    places, cursor = part.places, 0
    for number in part.voiced:
        reading = part.readings[number]
        start, end = claims[reading.first][0], claims[reading.last - 1][1]
        low, high = bisect_left(places, start), bisect_left(places, end)
        # Several tokens may make up one character (ß is ss), so the start counts only as far as the character.
        begin = max(low, cursor) if reading.letters else low
        stop = begin + len(reading.letters) if reading.letters else high
        if not 0 <= start < end <= len(part.text) or stop > high or (found and begin != cursor):
            return None
        if reading.letters and part.letters[begin:stop] != reading.letters:
            return None
        if begin < stop and (places[begin] != places[low] or places[stop - 1] != places[high - 1]):
            return None
        found[number], cursor = (begin, stop), stop
    return found


def walked(part: Part) -> dict[int, Span]:
    """The letters of each reading that is found when the text is read from left to right."""
    found: dict[int, Span] = {}
    voiced = part.voiced
    at, cursor = 0, 0
    while at < len(voiced):
        letters = part.readings[voiced[at]].letters
        # The first token need not stand at the text's beginning, which may have been cut off.
        if at == 0 or not letters or not part.letters.startswith(letters, cursor):
            step = _next(part, voiced[at:], cursor)
            if step is None:
                break
            at, cursor = at + step[0], step[1]
            letters = part.readings[voiced[at]].letters
        found[voiced[at]] = (cursor, cursor + len(letters))
        at, cursor = at + 1, cursor + len(letters)
    return found


def _next(part: Part, voiced: list[int], cursor: int) -> tuple[int, int] | None:
    """How many readings to pass over, and where the one after them stands, so that the least is passed over."""
    best: tuple[int, int, int] | None = None
    for length in (_PROBE, 1):
        passed, dark = 0, 0
        for skip, number in enumerate(voiced[:_REACH]):
            reading = part.readings[number]
            if reading.letters and (best is None or passed < best[0]):
                probe = ""
                for following in voiced[skip:]:
                    if not part.readings[following].letters or len(probe) >= length:
                        break
                    probe += part.readings[following].letters
                place = _place(part, probe, cursor, dark, reading.surface[0].isspace())
                cost = passed + place - cursor
                if place >= 0 and (best is None or cost < best[0]):
                    best = (cost, skip, place)
                # A long match that passes over nothing but unknown tokens is not given up for a short one nearby.
                if place >= 0 and passed == 0 and length == _PROBE:
                    return skip, place
            passed, dark = passed + len(reading.letters), dark + reading.dark
    return best[1:] if best else None


def _place(part: Part, letters: str, cursor: int, dark: int, spaced: bool) -> int:
    """The first place of the letters that leaves one to each dark reading before them."""
    if dark and part.letters.startswith(letters, cursor):
        # What is unknown may be a tab or a mark, and leave no letter.
        start = part.places[cursor - 1] + 1 if cursor else 0
        if part.text[start : part.places[cursor]].strip(" "):
            return cursor
    first = place = part.letters.find(letters, cursor + dark)
    # After an unknown word, a token that follows a space is the beginning of one if it can be.
    while dark and spaced and place > 0:
        if part.words[part.places[place]] != part.words[part.places[place - 1]]:
            return place
        place = part.letters.find(letters, place + 1)
    return first
