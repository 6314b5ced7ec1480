"""Locates the pieces of text that another package scored, and distributes their scores over units."""

import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from heedful.document import SPECIAL, Document, Unit
from heedful.document.alignment.matching import TextPart
from heedful.document.alignment.token_text import Span, fold
from heedful.document.units import unit_scores
from heedful.exchange.numbers import MANY, FittedScores

Places = tuple[tuple[Span, ...], ...]
"""For each piece the spans of its characters: several if it is a word wherever it occurs, none if it is a special
token."""

SPECIAL_NAME = re.compile(r"\[[A-Z]+\]|<[^<>\s]+>")
_SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]
_HIDDEN = [byte for byte in range(256) if byte not in _SHOWN]
BYTES = {chr(b): b for b in _SHOWN} | {chr(256 + place): b for place, b in enumerate(_HIDDEN)}
"""The characters in which byte-level tokenizers write bytes."""


def token_row(
    document: Document, names: Sequence[str], scores: Float[np.ndarray, "piece"]
) -> Float[np.ndarray, "token"] | None:
    """One number per token, if the pieces are the document's tokens, with or without its special tokens."""
    row = np.zeros(len(document.ids))
    for tokens in (np.arange(len(row)), np.flatnonzero(document.words != SPECIAL)):
        if names_match(document, names, tokens):
            row[tokens] = scores
            return row
    return None


def names_match(document: Document, names: Sequence[str], tokens: Int[np.ndarray, "_"]) -> bool:
    """Whether the names are those of these tokens, up to case, accents and a tokenizer's markers."""
    return len(names) == len(tokens) and all(map(_same, [document] * len(names), names, tokens.tolist()))


def are_pieces(document: Document, names: Sequence[str], everywhere: Places) -> bool:
    """Whether names that may be words are pieces in the order of the text.

    They are if one occurs twice or has a space at an end, or if joined they are the whole text and one has several
    places.
    """
    if len(set(names)) < len(names) or any(name != name.strip() for name in names if name.strip()):
        return True
    joined = "".join(fold(strip_markers(name)) for name in names)
    return any(len(spots) > 1 for spots in everywhere) and joined == fold(document.text)


def find_words(document: Document, names: Sequence[str]) -> Places:
    """All places of each word: as the text spells it, as the model reads it, without case, or as part of a word.

    A word that the text also spells with other case, as in "the" and "The", is found there too, unless that spelling
    has a name of its own.
    """
    part, spans = TextPart(document.text, 0, [], []), document.word_spans
    words = tuple(zip(spans, document.word_texts, document.word_keys, map(fold, document.word_texts), strict=True))
    claimed, folds = set(names), [fold(name) for name in names]
    places = []
    for name, letters in zip(names, folds, strict=True):
        # Of two names that differ in case alone, neither stands for a third spelling.
        alone = folds.count(letters) == 1 or name not in document.word_texts
        own = [
            span
            for span, text, key, folded in words
            if name and (text == name or (alone and text not in claimed and (key == name or folded == letters != "")))
        ]
        if not own and letters:
            own = _occurrences(document, part, letters)
        places.append(tuple(own))
    return tuple(places)


def spelling_notes(document: Document, names: Sequence[str], places: Places) -> list[str]:
    """One sentence about names that also stand for what the model reads as another word, if there are any."""
    key_of = dict(zip(document.word_spans, document.word_keys, strict=True))
    others = [
        repr(name)
        for name, spans in zip(names, places, strict=True)
        if len({key_of[span] for span in spans if span in key_of}) > 1
    ]
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return [f"{others[0]}{more} also stands for the same word in other case."] if others else []


def covers_words(document: Document, places: Places) -> bool:
    """Whether every word of the text that has a letter or digit is in one of the places."""
    spans = [span for piece in places for span in piece]
    return all(
        any(low < end and high > start for low, high in spans)
        for start, end in document.word_spans
        if any(character.isalnum() for character in document.text[start:end])
    )


def share_scores(document: Document, unit: Unit, scores: Float[np.ndarray, "piece"], places: Places) -> FittedScores:
    """Scores of units: a piece's score is shared evenly by its places, the words in each, and their tokens.

    Punctuation in a piece with letters, such as the comma of `story,`, gets no share.
    """
    row, reached = np.zeros(len(document.ids)), np.zeros(len(document.ids), dtype=bool)
    bounds = np.array(document.spans, dtype=np.int64).reshape(-1, 2)
    elsewhere, n_outside, n_shared = 0.0, 0, 0
    for score, spans in zip(scores.tolist(), places, strict=True):
        held = [words for span in spans if (words := _words_in(document, bounds, span))]
        n_shared += any(len(words) > 1 for words in held)
        if not held:
            elsewhere, n_outside = elsewhere + score, n_outside + bool(spans)
        for words in held:
            for tokens in words:
                row[tokens] += score / (len(held) * len(words) * len(tokens))
                reached[tokens] = True
    units, n_units = document.unit_of(unit), document.n_units(unit)
    n_missing = n_units - len(set(units[reached].tolist()))
    notes = []
    if n_missing:
        notes.append(f"{n_missing} of {n_units} {MANY[unit]} are not among the pieces and have score 0.")
    if n_shared:
        notes.append(f"{n_shared} of {len(places)} pieces contain several words, which share the score evenly.")
    if n_outside:
        notes.append(
            f"{n_outside} of {len(places)} pieces are outside the text that the model read; the sum of their "
            "scores is facts['elsewhere']."
        )
    return FittedScores(
        unit, unit_scores(document, unit, row)[0], {"elsewhere": elsewhere} if elsewhere else {}, tuple(notes)
    )


def _words_in(document: Document, bounds: Int[np.ndarray, "token 2"], span: Span) -> list[Int[np.ndarray, "_"]]:
    """The tokens of each word between two characters; words without letters only if there are no others."""
    low, high = span
    starts, ends = bounds.T
    inside = np.flatnonzero((starts < high) & (ends > low) & (starts < ends) & (document.words != SPECIAL))
    words = [inside[document.words[inside] == word] for word in dict.fromkeys(document.words[inside].tolist())]
    with_letters = [
        tokens
        for tokens in words
        if any(c.isalnum() for c in document.text[max(low, starts[tokens].min()) : min(high, ends[tokens].max())])
    ]
    return with_letters or words


def is_edge(document: Document, part: TextPart, at: int) -> bool:
    """Whether a letter begins one of the document's words, or follows a character that is not a letter or digit."""
    text, places = document.text, part.places
    if at in (0, len(places)):
        return True
    before, after = places[at - 1], places[at]
    if before + 1 == after and text[before].isalnum() and text[after].isalnum():
        return any(after in span for span in document.word_spans)
    return before != after


def _occurrences(document: Document, part: TextPart, letters: str) -> list[Span]:
    """Where letters are a word by themselves."""
    spans, at = [], part.letters.find(letters)
    while at >= 0:
        if is_edge(document, part, at) and is_edge(document, part, at + len(letters)):
            spans.append((part.places[at], part.places[at + len(letters) - 1] + 1))
        at = part.letters.find(letters, at + 1)
    return spans


def _same(document: Document, name: str, token: int) -> bool:
    start, end = document.spans[token]
    piece, text = document.pieces[token], document.text[start:end]
    if document.words[token] == SPECIAL:
        return not name.strip() or name == piece or SPECIAL_NAME.fullmatch(name) is not None
    if not document.known[token] and SPECIAL_NAME.fullmatch(name):
        return True
    spellings = [name, strip_markers(name)]
    if name and all(character in BYTES for character in name):
        try:
            spellings.append(bytes(BYTES[character] for character in name).decode())
        except UnicodeDecodeError:
            # A token of some bytes of a character; the text does not show which.
            if not text.isascii():
                return True
    return any(fold(spelling) in (fold(piece), fold(text)) for spelling in spellings)


def strip_markers(name: str) -> str:
    """A token's name without the markers of tokenizers for where words begin, continue or end."""
    plain = name.strip().removesuffix("</w>").lstrip("Ġ▁Ċ")
    return plain.removeprefix("##") if len(plain) > 2 else plain
