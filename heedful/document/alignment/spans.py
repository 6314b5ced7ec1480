"""The characters of each token, from the letters that were found, and a place for those that stand for none."""

import re
from bisect import bisect_left
from itertools import groupby
from typing import Literal

from heedful.document.alignment.matching import Part
from heedful.document.alignment.token_text import Span, letters_of


def evenly(part: Part) -> list[Span]:
    """The characters of each token if the text is shared out evenly among those that are not white space."""
    spans, characters = [(0, 0)] * len(part.tokens), [[place] for place in dict.fromkeys(part.places)]
    for t, span in zip(part.loud, _split(characters, len(part.loud)), strict=True):
        spans[t] = span
    return spans


def spread(part: Part, found: dict[int, Span]) -> list[Span]:
    """The characters of each token, from the letters of the readings that were found."""
    places = part.places
    spans: list[Span | None] = [None] * len(part.tokens)
    runs = [(known, list(run)) for known, run in groupby(part.voiced, key=lambda number: number in found)]
    stop = 0
    for place, (known, numbers) in enumerate(runs):
        if known:
            for number in numbers:
                reading, (begin, stop) = part.readings[number], found[number]
                for t, (a, b) in enumerate(reading.inner, reading.first) if begin < stop else ():
                    low, high = (a, max(b, 1)) if reading.letters else (0, stop - begin)
                    spans[t] = (places[begin + min(low, high - 1)], places[begin + high - 1] + 1)
            continue
        is_last = place == len(runs) - 1
        gap = list(dict.fromkeys(places[stop : None if is_last else found[runs[place + 1][1][0]][0]]))
        # What was cut off is nobody's: an unknown token stands for no more than lies between two spaces, and bytes left
        # over at the end for one character.
        whole = [list(item) for _, item in groupby(gap, key=part.chunks.__getitem__)]
        if is_last and not any(part.readings[number].surface for number in numbers):
            whole = [[character] for character in gap]
        items = whole[: len(numbers)] if is_last else whole if place else whole[-len(numbers) :]
        for finer in (part.words, range(len(part.text))):
            if len(items) < len(numbers):
                items = [list(item) for _, item in groupby(gap, key=finer.__getitem__)]
        for number, span in zip(numbers, _split(items, len(numbers)), strict=True) if items else ():
            reading = part.readings[number]
            spans[reading.first : reading.last] = [span] * (reading.last - reading.first)
    return _with_marks(part, spans)


def settled(part: Part, spans: list[Span]) -> list[Span]:
    """The spans with an empty one for white space: where the next token begins, or where the last one ends."""
    held = [end for start, end in spans if part.text[start:end].strip()]
    place, moved = max(held, default=len(part.text)), list(spans)
    for t, (start, end) in reversed(list(enumerate(spans))):
        if part.text[start:end].strip():
            place = start
        else:
            moved[t] = (place, place)
    return moved


def _split(items: list[list[int]], n: int) -> list[Span]:
    """The characters of the items shared out evenly among n; neighbours share one if there are too few."""
    if not items:
        return [(0, 0)] * n
    cuts = [(i * len(items) // n, max((i + 1) * len(items) // n, i * len(items) // n + 1)) for i in range(n)]
    return [(items[low][0], items[high - 1][-1] + 1) for low, high in cuts]


def _with_marks(part: Part, given: list[Span | None]) -> list[Span]:
    """The spans with places for tokens of white space or marks, and stretched over marks that no token stands for."""
    text, end, spans = part.text, None, [span or (0, 0) for span in given]
    starts = [t for t, span in enumerate(given) if span]
    for reading in part.readings:
        if given[reading.first]:
            end = max(end or 0, spans[reading.last - 1][1])
            continue
        after = bisect_left(starts, reading.first)
        is_last = after == len(starts)
        high = _silent(text, end or 0, 1) if is_last else spans[starts[after]][0]
        low = _silent(text, high, -1) if end is None else end
        voiced = reading.dark or reading.letters
        mark = "" if voiced else reading.surface.strip()
        if voiced:
            pattern = r"\S(?:.*\S)?" if text[low:high].strip() else r"[^ ](?:.*[^ ])?"
        else:
            pattern = re.escape(mark) or rf"\s{{1,{len(reading.surface)}}}"
        # A space that the text does not begin with was put before it by the tokenizer.
        anchored = rf"\A(?:{pattern})" if end is None and not mark else pattern
        # A mark that was made from an accented letter goes with that letter.
        none = (max(low - 1, 0), low) if mark else (high, high) if voiced and not is_last else (low, low)
        match = re.compile(anchored if low == 0 else pattern, re.DOTALL).search(text, low, high)
        span = match.span() if match else none
        spans[reading.first : reading.last] = [span] * (reading.last - reading.first)
        end = span[1]
    taken = {place for start, end in spans for place in range(start, end)}
    loose = [
        place not in taken and not character.isspace() and not letters_of(character)
        for place, character in enumerate(text)
    ]
    for t, (start, end) in enumerate(spans):
        if text[start:end].strip():
            while end < len(text) and loose[end]:
                end += 1
            low = start
            while low and loose[low - 1]:
                low -= 1
            # Marks belong to the token before them, unless there is none.
            spans[t] = (start if low and not text[low - 1].isspace() else low, end)
    return spans


def _silent(text: str, place: int, step: Literal[-1, 1]) -> int:
    """The far end of the characters without letters that lie before or after a place."""
    at = place - (step < 0)
    while 0 <= at < len(text) and not letters_of(text[at]):
        at += step
    return at + (step < 0)
