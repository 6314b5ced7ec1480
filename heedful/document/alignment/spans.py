"""The characters of each token, from its matched letters; tokens without letters get a span too."""

import re
from bisect import bisect_left
from itertools import groupby
from typing import Literal

from heedful.document.alignment.matching import TextPart
from heedful.document.alignment.token_text import Reading, Span, letters_of


def split_evenly(part: TextPart) -> list[Span]:
    """The characters of each token if the text is divided evenly among the tokens that are not white space."""
    spans, characters = [(0, 0)] * len(part.tokens), [[place] for place in dict.fromkeys(part.places)]
    for t, span in zip(part.visible_tokens, _split(characters, len(part.visible_tokens)), strict=True):
        spans[t] = span
    return spans


def spans_of_letters(part: TextPart, letters: dict[int, Span]) -> list[Span]:
    """The characters of each token, from the spans of letters of the matched readings."""
    places = part.places
    spans: list[Span | None] = [None] * len(part.tokens)
    runs = [(is_matched, list(run)) for is_matched, run in groupby(part.letter_readings, key=lambda n: n in letters)]
    stop = 0
    for place, (is_matched, numbers) in enumerate(runs):
        if is_matched:
            for number in numbers:
                reading, (begin, stop) = part.readings[number], letters[number]
                for t, (a, b) in enumerate(reading.inner, reading.first) if begin < stop else ():
                    low, high = (a, max(b, 1)) if reading.letters else (0, stop - begin)
                    spans[t] = (places[begin + min(low, high - 1)], places[begin + high - 1] + 1)
            continue
        is_last = place == len(runs) - 1
        gap = list(dict.fromkeys(places[stop : None if is_last else letters[runs[place + 1][1][0]][0]]))
        items = _items_of_gap(part, gap, numbers, is_first=not place, is_last=is_last)
        for number, span in zip(numbers, _split(items, len(numbers)), strict=True) if items else ():
            reading = part.readings[number]
            spans[reading.first : reading.last] = [span] * (reading.last - reading.first)
    return _over_loose_marks(part.text, _with_tokens_without_letters(part, spans))


def _items_of_gap(
    part: TextPart, gap: list[int], numbers: list[int], *, is_first: bool, is_last: bool
) -> list[list[int]]:
    """The characters of a gap, divided into items for the readings that were not matched: at least one for each."""
    # What was cut off belongs to no token: an unknown token covers no more than lies between two spaces, and bytes left
    # over at the end one character.
    whole = [list(item) for _, item in groupby(gap, key=part.chunks.__getitem__)]
    if is_last and not any(part.readings[number].surface for number in numbers):
        whole = [[character] for character in gap]
    items = whole[: len(numbers)] if is_last else whole[-len(numbers) :] if is_first else whole
    for finer in (part.words, range(len(part.text))):
        if len(items) < len(numbers):
            items = [list(item) for _, item in groupby(gap, key=finer.__getitem__)]
    return items


def collapse_spaces(part: TextPart, spans: list[Span]) -> list[Span]:
    """The spans, with an empty one for white space: where the next token begins, or where the last one ends."""
    held = [end for start, end in spans if part.text[start:end].strip()]
    place, moved = max(held, default=len(part.text)), list(spans)
    for t, (start, end) in reversed(list(enumerate(spans))):
        if part.text[start:end].strip():
            place = start
        else:
            moved[t] = (place, place)
    return moved


def _split(items: list[list[int]], n: int) -> list[Span]:
    """The characters of the items, divided evenly among n tokens; neighbours share an item if there are too few."""
    if not items:
        return [(0, 0)] * n
    cuts = [(i * len(items) // n, max((i + 1) * len(items) // n, i * len(items) // n + 1)) for i in range(n)]
    return [(items[low][0], items[high - 1][-1] + 1) for low, high in cuts]


def _with_tokens_without_letters(part: TextPart, spans_or_none: list[Span | None]) -> list[Span]:
    """The spans, completed for white space, marks and unreadable tokens that have none yet."""
    text, end, spans = part.text, None, [span or (0, 0) for span in spans_or_none]
    starts = [t for t, span in enumerate(spans_or_none) if span]
    for reading in part.readings:
        if spans_or_none[reading.first]:
            end = max(end or 0, spans[reading.last - 1][1])
            continue
        after = bisect_left(starts, reading.first)
        is_last = after == len(starts)
        high = _end_of_marks(text, end or 0, 1) if is_last else spans[starts[after]][0]
        low = _end_of_marks(text, high, -1) if end is None else end
        has_letters = reading.unreadable or bool(reading.letters)
        mark = "" if has_letters else reading.surface.strip()
        # A mark that was made from an accented letter goes with that letter.
        otherwise = (max(low - 1, 0), low) if mark else (high, high) if has_letters and not is_last else (low, low)
        pattern = _pattern(reading, mark, text[low:high])
        # A space that the text does not begin with was put before it by the tokenizer.
        at_start = end is None and not mark and low == 0
        match = re.compile(rf"\A(?:{pattern})" if at_start else pattern, re.DOTALL).search(text, low, high)
        span = match.span() if match else otherwise
        spans[reading.first : reading.last] = [span] * (reading.last - reading.first)
        end = span[1]
    return spans


def _pattern(reading: Reading, mark: str, between: str) -> str:
    """The regular expression for what a reading may cover of the characters between its neighbours."""
    if reading.unreadable or reading.letters:
        return r"\S(?:.*\S)?" if between.strip() else r"[^ ](?:.*[^ ])?"
    return re.escape(mark) or rf"\s{{1,{len(reading.surface)}}}"


def _over_loose_marks(text: str, spans: list[Span]) -> list[Span]:
    """The spans, extended over neighbouring marks that no token covers."""
    covered = {place for start, end in spans for place in range(start, end)}
    loose = [
        place not in covered and not character.isspace() and not letters_of(character)
        for place, character in enumerate(text)
    ]
    extended = list(spans)
    for t, (start, end) in enumerate(spans):
        if text[start:end].strip():
            while end < len(text) and loose[end]:
                end += 1
            low = start
            while low and loose[low - 1]:
                low -= 1
            # Marks belong to the token before them, unless there is none.
            extended[t] = (start if low and not text[low - 1].isspace() else low, end)
    return extended


def _end_of_marks(text: str, place: int, step: Literal[-1, 1]) -> int:
    """The far end of the characters without letters before or after a place."""
    at = place - (step < 0)
    while 0 <= at < len(text) and not letters_of(text[at]):
        at += step
    return at + (step < 0)
