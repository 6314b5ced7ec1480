"""The places of pieces that come in the order of a text, found by reading it from left to right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from heedful.document import SPECIAL, Document
from heedful.document.alignment.matching import TextPart
from heedful.document.alignment.token_text import Span, fold
from heedful.errors import BadInput
from heedful.exchange.pieces import BYTES, SPECIAL_NAME, Places, is_edge, unsigned

_PROBE, _CERTAIN = 12, 4


@final
@dataclass(frozen=True)
class _Piece:
    """Names that make up whole characters, and the ways their letters may be spelt; none of white space.

    A `special` one is called as special tokens are, and an unknown token stands for characters that its name does not
    tell.
    """

    first: int
    last: int
    spellings: tuple[str, ...]
    special: bool = False


def in_order(document: Document, names: Sequence[str]) -> Places:
    """The places of pieces that come in the order of the text; one that is not found is refused.

    Each begins where the one before it ended, or else where a word begins. What lies around an unknown token's place is
    its own. Pieces may leave words out, but not end within one.
    """
    part, cursor, last = TextPart(document.text, 0, [], []), 0, ""
    places: list[tuple[Span, ...]] = [()] * len(names)
    dark: list[int] = []
    pieces, spaced = _pieces(document, names), any(character.isspace() for name in names for character in name)
    for number, piece in enumerate(pieces):
        name = "".join(names[piece.first : piece.last])
        # A text may hold what looks like a special token, such as <br>.
        if piece.special and (dark or _next(part, piece, cursor) is None):
            dark += [piece.first] if "unk" in name.lower() else []
            continue
        if not piece.spellings:
            continue
        before = names[piece.first - 1] if piece.first else ""
        bare = unsigned(name)
        if name == before and not bare.isascii() and not _stands(part, bare, cursor, spaced):
            # The same character once more: so offsets have it of each of a character's bytes.
            places[piece.first] = places[piece.first - 1]
            continue
        step = _after_unknown(part, pieces[number:], cursor) if dark else _next(part, piece, cursor)
        if step is None and piece.first == 1:
            # Offsets may give the sign before a text's first token that token's first character.
            step = _next(part, piece, 0)
        step = step or _jump(document, part, piece, cursor)
        if step is None:
            raise BadInput(
                f"{name!r}, piece {piece.first + 1} of {len(names)}, does not come next in the text; wanted: pieces of "
                "this text in its order, or words that are in it."
            )
        begin, end = step
        if begin > cursor and not dark:
            _check_whole(document, part, cursor, last)
        for place in dark if begin > cursor else ():
            places[place] = (_characters(part, cursor, begin),)
        places[piece.first : piece.last] = [(_characters(part, begin, end),)] * (piece.last - piece.first)
        cursor, last, dark = end, name, []
    if dark and cursor < len(part.letters):
        chunk = part.chunks[part.places[cursor]]
        rest = [at for at in range(cursor, len(part.letters)) if part.chunks[part.places[at]] == chunk]
        for place in dark:
            places[place] = (_characters(part, cursor, rest[-1] + 1),)
    if not dark:
        _check_whole(document, part, cursor, last)
    if not any(places):
        raise BadInput(f"None of {len(names)} pieces is in the text; wanted: pieces of this text in its order.")
    return tuple(places)


def _pieces(document: Document, names: Sequence[str]) -> list[_Piece]:
    special = {piece for piece, word in zip(document.pieces, document.words, strict=True) if word == SPECIAL}
    plain = [name for name in names if name not in special and not SPECIAL_NAME.fullmatch(name.strip())]
    in_bytes = _are_bytes(plain)
    pieces, first = [], 0
    while first < len(names):
        name, last = names[first], first + 1
        if name in special or SPECIAL_NAME.fullmatch(name.strip()):
            pieces.append(_Piece(first, last, tuple(filter(None, [fold(name)])), special=True))
        elif in_bytes:
            while (text := _decoded(names[first:last])) is None and last < len(names) and names[last] not in special:
                last += 1
            pieces.append(_Piece(first, last, tuple(filter(None, [fold(text or "")]))))
        else:
            spellings = [fold(name), fold(unsigned(name))] if unsigned(name) else []
            pieces.append(_Piece(first, last, tuple(filter(None, spellings))))
        first = last
    return pieces


def _are_bytes(names: Sequence[str]) -> bool:
    """Whether names are written as byte-level tokenizers write bytes: they all make a text that is not their own."""
    joined = "".join(names)
    text = _decoded(names)
    return text is not None and text != joined


def _decoded(names: Sequence[str]) -> str | None:
    try:
        return bytes(BYTES[character] for character in "".join(names)).decode()
    except (KeyError, UnicodeDecodeError):
        return None


def _next(part: TextPart, piece: _Piece, cursor: int) -> Span | None:
    """The piece right where the one before it ended."""
    return next(((cursor, cursor + len(s)) for s in piece.spellings if part.letters.startswith(s, cursor)), None)


def _jump(document: Document, part: TextPart, piece: _Piece, cursor: int) -> Span | None:
    """The piece at the beginning of a later word."""
    found = []
    for letters in piece.spellings:
        at = part.letters.find(letters, cursor)
        while at >= 0 and not is_edge(document, part, at):
            at = part.letters.find(letters, at + 1)
        found += [(at, at + len(letters))] if at >= 0 else []
    return min(found, default=None)


def _after_unknown(part: TextPart, pieces: Sequence[_Piece], cursor: int) -> Span | None:
    """The piece behind characters that nothing is known of: where most of what follows it follows."""
    ahead = ""
    for piece in pieces:
        if piece.special or len(ahead) >= _PROBE:
            break
        ahead += piece.spellings[-1] if piece.spellings else ""
    own = pieces[0].spellings[-1]
    for probe in (ahead, own):
        # What is unknown may be white space, and leave no letter; a short probe is there by chance.
        for start in (cursor, cursor + 1) if len(probe) >= _CERTAIN and ahead is probe else (cursor + 1, cursor):
            if start == cursor and not part.letters.startswith(probe, cursor):
                continue
            at = part.letters.find(probe, start)
            if at >= 0:
                return at, at + len(own)
    return None


def _stands(part: TextPart, name: str, cursor: int, spaced: bool) -> bool:
    """Whether a name comes next in the text as it is written; where spaces are pieces too, without one before it."""
    if cursor == len(part.places) or not part.text.startswith(name, part.places[cursor]):
        return False
    return not spaced or not cursor or part.places[cursor - 1] + 1 == part.places[cursor]


def _check_whole(document: Document, part: TextPart, cursor: int, last: str) -> None:
    """Refuses pieces that end within a word."""
    if not is_edge(document, part, cursor):
        raise BadInput(f"{last!r} ends within a word of the text, and no piece goes on from there.")


def _characters(part: TextPart, begin: int, end: int) -> Span:
    return part.places[begin], part.places[end - 1] + 1
