"""Finds the places of pieces that come in the order of a text, by reading it from left to right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from heedful.document import SPECIAL, Document
from heedful.document.alignment.matching import TextPart
from heedful.document.alignment.token_text import Span, fold
from heedful.errors import BadInput
from heedful.exchange.pieces import BYTES, SPECIAL_NAME, Places, is_edge, strip_markers

_PROBE, _CERTAIN = 12, 4


@final
@dataclass(frozen=True)
class _Piece:
    """Names that make up whole characters, and how their letters may be spelt; white space has no spelling.

    A `special` piece has the name of a special token. An unknown token covers characters that are not in its name.
    """

    first: int
    last: int
    spellings: tuple[str, ...]
    special: bool = False


def find_in_order(document: Document, names: Sequence[str]) -> Places:
    """The places of pieces that come in the order of the text; a piece that is not found is an error.

    Each begins where the one before it ended, or else where a word begins. An unknown token gets the characters between
    its neighbours. Pieces may leave words out, but not end within one.
    """
    spaced = any(character.isspace() for name in names for character in name)
    walk = _Walk(document, TextPart(document.text, 0, [], []), names, spaced, [()] * len(names), [])
    pieces = _pieces(document, names)
    for number in range(len(pieces)):
        walk.read(pieces, number)
    walk.finish()
    if not any(walk.places):
        raise BadInput(f"None of the {len(names)} pieces is in the text; give pieces of this text in its order.")
    return tuple(walk.places)


@final
@dataclass
class _Walk:
    """The text read from left to right: the places found so far, and where the last piece ended.

    `unknown` are the unknown tokens since then: they get the characters before the next piece. `spaced` says whether
    spaces are among the names.
    """

    document: Document
    part: TextPart
    names: Sequence[str]
    spaced: bool
    places: list[tuple[Span, ...]]
    unknown: list[int]
    cursor: int = 0
    last: str = ""

    def read(self, pieces: Sequence[_Piece], number: int) -> None:
        """Finds the place of one piece and moves on."""
        piece = pieces[number]
        name = "".join(self.names[piece.first : piece.last])
        # A text may contain what looks like a special token, such as <br>.
        if piece.special and (self.unknown or _next(self.part, piece, self.cursor) is None):
            self.unknown += [piece.first] if "unk" in name.lower() else []
        elif piece.spellings and self._repeats_a_character(piece, name):
            self.places[piece.first] = self.places[piece.first - 1]
        elif piece.spellings:
            self._put(piece, name, self._find(pieces, number, name))

    def finish(self) -> None:
        """Gives unknown tokens at the end the rest of their word; pieces that end within a word are an error."""
        part = self.part
        if not self.unknown:
            _check_whole(self.document, part, self.cursor, self.last)
        elif self.cursor < len(part.letters):
            chunk = part.chunks[part.places[self.cursor]]
            rest = [at for at in range(self.cursor, len(part.letters)) if part.chunks[part.places[at]] == chunk]
            for place in self.unknown:
                self.places[place] = (_characters(part, self.cursor, rest[-1] + 1),)

    def _repeats_a_character(self, piece: _Piece, name: str) -> bool:
        """Whether the name is the character before it once more: offsets give it to each of a character's bytes."""
        before = self.names[piece.first - 1] if piece.first else ""
        bare = strip_markers(name)
        return name == before and not bare.isascii() and not _stands(self.part, bare, self.cursor, self.spaced)

    def _find(self, pieces: Sequence[_Piece], number: int, name: str) -> Span:
        """The letters of a piece: next, or after unknown tokens, or at the beginning of a later word."""
        piece = pieces[number]
        if self.unknown:
            span = _after_unknown(self.part, pieces[number:], self.cursor)
        else:
            span = _next(self.part, piece, self.cursor)
        if span is None and piece.first == 1:
            # Offsets may give the marker before a text's first token that token's first character.
            span = _next(self.part, piece, 0)
        span = span or _jump(self.document, self.part, piece, self.cursor)
        if span is None:
            raise BadInput(
                f"{name!r}, piece {piece.first + 1} of {len(self.names)}, does not come next in the text; give pieces "
                "of this text in its order, or words of the text."
            )
        return span

    def _put(self, piece: _Piece, name: str, span: Span) -> None:
        begin, end = span
        if begin > self.cursor and not self.unknown:
            _check_whole(self.document, self.part, self.cursor, self.last)
        for place in self.unknown if begin > self.cursor else ():
            self.places[place] = (_characters(self.part, self.cursor, begin),)
        own = [(_characters(self.part, begin, end),)] * (piece.last - piece.first)
        self.places[piece.first : piece.last] = own
        self.cursor, self.last, self.unknown = end, name, []


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
            spellings = [fold(name), fold(strip_markers(name))] if strip_markers(name) else []
            pieces.append(_Piece(first, last, tuple(filter(None, spellings))))
        first = last
    return pieces


def _are_bytes(names: Sequence[str]) -> bool:
    """Whether names are written as byte-level tokenizers write bytes: decoded, they are another text."""
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
    spans = []
    for letters in piece.spellings:
        at = part.letters.find(letters, cursor)
        while at >= 0 and not is_edge(document, part, at):
            at = part.letters.find(letters, at + 1)
        spans += [(at, at + len(letters))] if at >= 0 else []
    return min(spans, default=None)


def _after_unknown(part: TextPart, pieces: Sequence[_Piece], cursor: int) -> Span | None:
    """The piece after unknown characters: where most of the pieces that follow it follow too."""
    ahead = ""
    for piece in pieces:
        if piece.special or len(ahead) >= _PROBE:
            break
        ahead += piece.spellings[-1] if piece.spellings else ""
    own = pieces[0].spellings[-1]
    for probe in (ahead, own):
        # The unknown token may be white space, without letters; a short probe may match by accident.
        for start in (cursor, cursor + 1) if len(probe) >= _CERTAIN and ahead is probe else (cursor + 1, cursor):
            if start == cursor and not part.letters.startswith(probe, cursor):
                continue
            at = part.letters.find(probe, start)
            if at >= 0:
                return at, at + len(own)
    return None


def _stands(part: TextPart, name: str, cursor: int, spaced: bool) -> bool:
    """Whether the text continues with this name; if spaces are pieces too, without a space before it."""
    if cursor == len(part.places) or not part.text.startswith(name, part.places[cursor]):
        return False
    return not spaced or not cursor or part.places[cursor - 1] + 1 == part.places[cursor]


def _check_whole(document: Document, part: TextPart, cursor: int, last: str) -> None:
    """Refuses pieces that end within a word."""
    if not is_edge(document, part, cursor):
        raise BadInput(f"{last!r} ends within a word of the text, and no piece covers the rest of the word.")


def _characters(part: TextPart, begin: int, end: int) -> Span:
    return part.places[begin], part.places[end - 1] + 1
