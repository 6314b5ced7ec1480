"""A text or an image as a model reads it, and its units: tokens, words, sentences, patches."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final, get_args

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, UInt8

from heedful.document.draws import draws_of
from heedful.document.note import Note
from heedful.document.regions import regions
from heedful.errors import BadInput, brief, unknown_name

Unit = Literal["token", "word", "type", "segment", "sentence", "passage", "patch"]
"""A type is all occurrences of a word. A segment is text between punctuation marks, or a region of an image. A passage
is one of the texts that a language model got as context."""
UNITS: tuple[Unit, ...] = get_args(Unit)

Absence = str
"""How a unit is removed. "replace": the unknown token replaces it; "replace:film": that word does. "delete": later
words move up. "mask": its position gets no attention; if the output is read from there, as from a decoder's last word,
the replacement is there. "mean", "zero": its word vector is the vocabulary's mean, or zero. Of a patch: "replace" and
"zero" are grey, "mean" is the mean colour of the image, "blur" is the blurred patch, and "delete" and "mask" remove
it. "cut": of text that a language model writes, only what is written does not attend to the unit.
"marginal:DATA", "conditional:MODEL": words drawn from a data set or file, or by a masked language model; the value is
the mean over the draws (`draws.py`)."""
ABSENCES = (
    *("replace", "replace:WORD", "delete", "mask", "mean", "zero", "blur", "cut"),
    *("marginal:DATA", "conditional:MODEL"),
)

SPECIAL = -1
_LETTERS = re.compile(r"(?<!\w)[^\W\d_]\.$")
"""A letter alone and its point."""
_SECOND = re.compile(r"(?<!\w)[^\W\d_]\.[^\W\d_]\.$")
_LETTER = re.compile(r"[^\W\d_](?!\w)")


@final
@dataclass(frozen=True)
class Pair:
    """Two texts that enter a model together: premise and hypothesis, or a source and the start of its translation."""

    first: str
    second: str


@final
@dataclass(frozen=True, eq=False)
class Picture:
    """The image of a document: its colours for display, and the pixels that the model reads."""

    rgb: UInt8[np.ndarray, "height width 3"]
    pixels: Float32[np.ndarray, "channel height width"]
    grid: tuple[int, int]
    """Rows and columns of patches."""

    __repr__ = brief


@final
@dataclass(frozen=True, eq=False)
class Document:
    """The input of a model: token ids, the characters that each token covers, and the word it belongs to.

    `words[t]` is the word of token t in reading order, or −1 for a special token such as [cls]; `known[t]` is False if
    the model reads it as the unknown token; `notes` are remarks for the reader. Of a pair, `segments[t]` is 1 for the
    tokens of the second text. Of a context, `passages[t]` is the passage of token t, or −1 outside. Of an image, every
    patch is a token and a word. `attached[t]` is what a model needs of token t beside its id: whether an output is read
    there, or the features of a region. It stays with its token in masked copies.
    """

    text: str
    ids: Int[np.ndarray, "token"]
    pieces: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    words: Int[np.ndarray, "token"]
    known: Bool[np.ndarray, "token"]
    notes: tuple[Note, ...] = ()
    segments: Int[np.ndarray, "token"] | None = None
    picture: Picture | None = None
    passages: Int[np.ndarray, "token"] | None = None
    attached: Float[np.ndarray, "token column"] | None = None

    __repr__ = brief

    @cached_property
    def word_spans(self) -> tuple[tuple[int, int], ...]:
        """The start and end character of each word."""
        starts: dict[int, int] = {}
        ends: dict[int, int] = {}
        for word, (start, end) in zip(self.words.tolist(), self.spans, strict=True):
            if word != SPECIAL:
                starts[word] = min(start, starts.get(word, start))
                ends[word] = max(end, ends.get(word, end))
        return tuple((starts[word], ends[word]) for word in sorted(starts))

    @cached_property
    def word_texts(self) -> tuple[str, ...]:
        """The words as the text spells them."""
        return tuple(self.text[start:end] for start, end in self.word_spans)

    @cached_property
    def word_keys(self) -> tuple[str, ...]:
        """The words as the model reads them; words with equal keys are occurrences of one type."""
        joined: dict[int, str] = {}
        last = 0
        for word, piece, (start, end) in zip(self.words.tolist(), self.pieces, self.spans, strict=True):
            if word != SPECIAL:
                # Where several tokens make up a character, the piece of each is the whole character.
                joined[word] = joined.get(word, "") + (self.text[last:end] if start < min(last, end) else piece)
                last = max(last, end)
        return tuple(joined[word].strip() for word in sorted(joined))

    def unit_of(self, unit: Unit) -> Int[np.ndarray, "token"]:
        """The unit each token belongs to, numbered in order of first appearance; −1 for special tokens."""
        if unit not in self._numbered:
            numbers = self._number(unit)
            numbers.flags.writeable = False
            self._numbered[unit] = numbers
        return self._numbered[unit]

    @cached_property
    def _numbered(self) -> dict[Unit, Int[np.ndarray, "token"]]:
        return {}

    def _number(self, unit: Unit) -> Int[np.ndarray, "token"]:
        real = self.words != SPECIAL
        if unit != "segment" and (unit == "patch") != (self.picture is not None):
            raise BadInput(
                f"The unit {unit!r} does not fit; images have patches or segments, texts have all other units."
            )
        if unit == "segment" and self.picture is not None:
            return np.where(real, self._regions[self.words], SPECIAL)
        if unit in ("token", "patch"):
            return np.where(real, np.cumsum(real) - 1, SPECIAL)
        if unit == "passage":
            if self.passages is None:
                raise BadInput("There are no passages; give them as context, or choose another unit.")
            return np.where(real, self.passages, SPECIAL)
        return np.where(real, self._unit_of_word(unit)[self.words], SPECIAL)

    def n_units(self, unit: Unit) -> int:
        """The number of units of a kind."""
        return int(self.unit_of(unit).max(initial=SPECIAL)) + 1

    def units(self, unit: Unit) -> tuple[str, ...]:
        """The units as strings, in reading order."""
        if unit in ("token", "patch"):
            return tuple(p for p, word in zip(self.pieces, self.words.tolist(), strict=True) if word != SPECIAL)
        if unit == "word":
            return self.word_texts
        if unit == "type":
            return tuple(dict.fromkeys(self.word_keys))
        if self.picture is not None:
            return tuple(f"region {number + 1}" for number in range(self.n_units(unit)))
        if unit == "passage":
            numbers = self.unit_of(unit)
            places = [np.flatnonzero(numbers == number) for number in range(self.n_units(unit))]
            return tuple(self.text[self.spans[p[0]][0] : self.spans[p[-1]][1]].strip() for p in places)
        sentences = self._unit_of_word(unit)
        bounds = [np.flatnonzero(sentences == number) for number in range(int(sentences.max(initial=-1)) + 1)]
        return tuple(self.text[self.word_spans[w[0]][0] : self.word_spans[w[-1]][1]] for w in bounds)

    @property
    def truncated(self) -> bool:
        """Whether the text is longer than what was read."""
        return any(note.kind == "truncated" for note in self.notes)

    def coarsening(self, fine: Unit, coarse: Unit) -> Int[np.ndarray, "unit"]:
        """For each `fine` unit, the `coarse` unit that contains it."""
        check_unit(coarse)
        allowed = {
            "token": ("token", "word", "type", "segment", "sentence"),
            "word": ("word", "type", "segment", "sentence"),
            "type": ("type",),
            "segment": ("segment", "sentence") if self.picture is None else ("segment",),
            "sentence": ("sentence",),
            "passage": ("passage",),
            "patch": ("patch", "segment"),
        }
        if coarse not in allowed[fine]:
            raise unknown_name(f"way from unit {fine!r} to unit", coarse, allowed[fine])
        holder = np.full(self.n_units(fine), SPECIAL)
        inner, outer = self.unit_of(fine), self.unit_of(coarse)
        holder[inner[inner != SPECIAL]] = outer[inner != SPECIAL]
        return holder

    @cached_property
    def _regions(self) -> Int[np.ndarray, "patch"]:
        assert self.picture is not None
        return regions(self.picture.rgb, self.picture.grid)

    def _unit_of_word(self, unit: Unit) -> Int[np.ndarray, "word"]:
        keys = self.word_keys
        if unit == "word":
            return np.arange(len(keys))
        if unit == "type":
            number = {key: index for index, key in enumerate(dict.fromkeys(keys))}
            return np.array([number[key] for key in keys], dtype=np.int64)
        if unit in ("segment", "sentence"):
            marks = set(".!?") if unit == "sentence" else set(".!?,;:)—–")
            closes = np.array(
                [
                    set(key) <= marks and not _is_inner(self.text, *span)
                    for key, span in zip(keys, self.word_spans, strict=True)
                ],
                dtype=bool,
            )
            # A run such as "?!" or "..." closes one sentence, so only the last mark of a run counts.
            last = closes & ~np.append(closes[1:], False)
            if self.segments is not None:
                # The first text of a pair closes its last sentence, with or without a mark.
                second = np.zeros(len(keys), dtype=bool)
                second[self.words[(self.segments == 1) & (self.words != SPECIAL)]] = True
                last |= ~second & np.append(second[1:], False)
            return np.concatenate([[0], np.cumsum(last)[:-1]]).astype(np.int64) if len(keys) else np.zeros(0, np.int64)
        raise unknown_name("unit", unit, UNITS)


def _is_inner(text: str, start: int, end: int) -> bool:
    """Whether the mark there is part of a number (3.14; 1,000) or of an abbreviation of letters (U.S.A., e.g.)."""
    if text[max(0, start - 1) : start].isdigit() and text[end : end + 1].isdigit():
        return True
    if not _LETTERS.search(text[max(0, start - 4) : end]):
        return False
    if _LETTER.match(text[end : end + 2]):
        return True
    # The last mark of an abbreviation closes nothing if the sentence goes on in lower case.
    return bool(_SECOND.search(text[max(0, start - 4) : end])) and text[end:].lstrip()[:1].islower()


def check_text(text: object) -> str:
    """The text itself; a pair, another type or a binary file is refused."""
    if isinstance(text, Pair):
        raise BadInput("This model reads one text; a pair was given.")
    if not isinstance(text, str):
        raise BadInput(f"A text is a string; {type(text).__name__} was given.")
    if "\0" in text:
        raise BadInput(f"The text contains a NUL character at position {text.index(chr(0))}; is it a binary file?")
    return text


def check_unit(unit: str) -> None:
    """Refuses a unit that does not exist."""
    if not isinstance(unit, str) or unit not in UNITS:
        raise unknown_name("unit", unit, UNITS)


def check_absence(absence: Absence, choices: tuple[str, ...] = ABSENCES) -> None:
    """Refuses an absence that does not exist, or that is not among the choices."""
    kind, colon, word = absence.partition(":")
    if draws_of(absence) is not None:
        return
    if kind not in choices or (colon and (kind != "replace" or not word)):
        raise unknown_name("absence", absence, choices)
