"""Where the pieces of a text lie that another package gave numbers to, and what of them each unit gets."""

import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from heedful.document import SPECIAL, Document, Unit
from heedful.document.alignment.matching import TextPart
from heedful.document.alignment.token_text import Span, fold
from heedful.document.units import unit_scores
from heedful.exchange.numbers import MANY, Scored

Places = tuple[tuple[Span, ...], ...]
"""For each piece the characters it stands for: in several places where a word is meant wherever it is; in none where
it is a special token."""

SPECIAL_NAME = re.compile(r"\[[A-Z]+\]|<[^<>\s]+>")
_SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]
_HIDDEN = [byte for byte in range(256) if byte not in _SHOWN]
BYTES = {chr(b): b for b in _SHOWN} | {chr(256 + place): b for place, b in enumerate(_HIDDEN)}
"""The characters in which byte-level tokenizers write bytes."""


def token_row(
    document: Document, names: Sequence[str], scores: Float[np.ndarray, "piece"]
) -> Float[np.ndarray, "token"] | None:
    """A number a token, if the pieces are the document's tokens, with or without its special ones."""
    row = np.zeros(len(document.ids))
    for tokens in (np.arange(len(row)), np.flatnonzero(document.words != SPECIAL)):
        if agree(document, names, tokens):
            row[tokens] = scores
            return row
    return None


def agree(document: Document, names: Sequence[str], tokens: Int[np.ndarray, "_"]) -> bool:
    """Whether the names are those of these tokens, but for case, accents and a tokenizer's signs."""
    return len(names) == len(tokens) and all(map(_same, [document] * len(names), names, tokens.tolist()))


def are_pieces(document: Document, names: Sequence[str], everywhere: Places) -> bool:
    """Whether names that may be words are pieces in the order of the text.

    They are if one comes twice or has a space beside it, or if they are the whole text when strung together; that does
    not matter where each has one place only.
    """
    if len(set(names)) < len(names) or any(name != name.strip() for name in names if name.strip()):
        return True
    strung = "".join(fold(unsigned(name)) for name in names)
    return any(len(spots) > 1 for spots in everywhere) and strung == fold(document.text)


def by_words(document: Document, names: Sequence[str]) -> Places:
    """All places of each word: as the text spells it, as the model reads it, but for case, or as part of a word."""
    part, spans = TextPart(document.text, 0, [], []), document.word_spans
    ways = (document.word_texts, document.word_keys, tuple(map(fold, document.word_texts)))
    places = []
    for name in names:
        found: list[Span] = []
        for way, spelling in zip(ways, (name, name, fold(name)), strict=True):
            found = found or [span for span, word in zip(spans, way, strict=True) if word == spelling and spelling]
        if not found and fold(name):
            found = _found(document, part, fold(name))
        places.append(tuple(found))
    return tuple(places)


def placed(document: Document, unit: Unit, scores: Float[np.ndarray, "piece"], places: Places) -> Scored:
    """What each unit gets: a piece's number is shared evenly by its places, the words in each, and their tokens.

    Marks in a piece that has letters too, such as the comma of `story,`, get no share.
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
        notes.append(f"{n_missing} of {n_units} {MANY[unit]} were not named and have score 0.")
    if n_shared:
        notes.append(f"{n_shared} of {len(places)} pieces hold several words, which share the score evenly.")
    if n_outside:
        notes.append(
            f"{n_outside} of {len(places)} pieces lie where the model read nothing; their sum is the fact 'elsewhere'."
        )
    return Scored(
        unit, unit_scores(document, unit, row)[0], {"elsewhere": elsewhere} if elsewhere else {}, tuple(notes)
    )


def _words_in(document: Document, bounds: Int[np.ndarray, "token 2"], span: Span) -> list[Int[np.ndarray, "_"]]:
    """The tokens between two characters, those of a word together; words without letters only if there is no other."""
    low, high = span
    starts, ends = bounds.T
    inside = np.flatnonzero((starts < high) & (ends > low) & (starts < ends) & (document.words != SPECIAL))
    words = [inside[document.words[inside] == word] for word in dict.fromkeys(document.words[inside].tolist())]
    sounding = [
        tokens
        for tokens in words
        if any(c.isalnum() for c in document.text[max(low, starts[tokens].min()) : min(high, ends[tokens].max())])
    ]
    return sounding or words


def is_edge(document: Document, part: TextPart, at: int) -> bool:
    """Whether a letter begins one of the document's words, or stands beside what is no letter or digit."""
    text, places = document.text, part.places
    if at in (0, len(places)):
        return True
    before, after = places[at - 1], places[at]
    if before + 1 == after and text[before].isalnum() and text[after].isalnum():
        return any(after in span for span in document.word_spans)
    return before != after


def _found(document: Document, part: TextPart, letters: str) -> list[Span]:
    """Where letters stand by themselves."""
    found, at = [], part.letters.find(letters)
    while at >= 0:
        if is_edge(document, part, at) and is_edge(document, part, at + len(letters)):
            found.append((part.places[at], part.places[at + len(letters) - 1] + 1))
        at = part.letters.find(letters, at + 1)
    return found


def _same(document: Document, name: str, token: int) -> bool:
    start, end = document.spans[token]
    piece, text = document.pieces[token], document.text[start:end]
    if document.words[token] == SPECIAL:
        return not name.strip() or name == piece or SPECIAL_NAME.fullmatch(name) is not None
    if not document.known[token] and SPECIAL_NAME.fullmatch(name):
        return True
    spellings = [name, unsigned(name)]
    if name and all(character in BYTES for character in name):
        try:
            spellings.append(bytes(BYTES[character] for character in name).decode())
        except UnicodeDecodeError:
            # A token of some bytes of a character; which ones cannot be told from the text.
            if not text.isascii():
                return True
    return any(fold(spelling) in (fold(piece), fold(text)) for spelling in spellings)


def unsigned(name: str) -> str:
    """A token's name without the signs by which tokenizers mark where words begin, go on or end."""
    plain = name.strip().removesuffix("</w>").lstrip("Ġ▁Ċ")
    return plain.removeprefix("##") if len(plain) > 2 else plain
