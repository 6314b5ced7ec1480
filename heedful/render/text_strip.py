"""The text of an explanation in pieces: each unit with its score, and the text between units."""

import re
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from heedful.document import SPECIAL, Document
from heedful.explanation import Explanation
from heedful.render.palette import strengths

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:a|b|br|div|em|font|h[1-6]|hr|i|li|ol|p|span|strong|u|ul)(?:\s+[\w-]+=[^<>]*)?\s*/?>", re.IGNORECASE
)


@final
class Piece(NamedTuple):
    """A piece of text with its score; the strength in [−1, 1] is None where no unit is."""

    text: str
    strength: float | None
    score: float | None = None
    error: float | None = None


def pieces(explanation: Explanation) -> list[Piece]:
    """The text up to the last character that the model read, then an ellipsis if the text is longer.

    A tag <br /> is drawn as the end of a line. If the model read the tag, a tinted ↵ has the strongest of its scores.
    """
    document = explanation.document
    drawn = _characters(document)
    unit_of, relative = document.unit_of(explanation.unit).tolist(), strengths(explanation.scores)
    cut: list[Piece] = []
    end, last = 0, SPECIAL
    for unit, (start, stop) in zip(unit_of, document.spans, strict=True):
        # Several tokens may share a character, such as the bytes of an emoji; it is shown once.
        start = max(start, end)
        if unit == SPECIAL or stop <= start:
            continue
        if between := "".join(drawn[end:start]):
            cut.append(Piece(between, None))
        error = None if explanation.error is None else float(explanation.error[unit])
        score = float(explanation.scores[unit])
        piece = Piece("".join(drawn[start:stop]), float(relative[unit]), score, error)
        if piece.text and unit == last and not between:
            # The tokens of one word are drawn as one piece.
            cut[-1] = piece._replace(text=cut[-1].text + piece.text)
        elif piece.text:
            cut.append(piece)
        elif abs(piece.strength or 0) > abs(cut[-1].strength or 0):
            cut[-1] = piece._replace(text=cut[-1].text)
        end, last = stop, unit
    if document.text[end:].strip():
        cut.append(Piece(" …", None))
    return cut


def _characters(document: Document) -> list[str]:
    """Every character as it is drawn: a tag <br /> is one line end, at its first character that a unit covers."""
    drawn = list(visible(document.text.replace("\r\n", " \n")))
    covered = {place for start, stop in document.spans for place in range(start, stop)}
    for tag in _BREAK.finditer(document.text):
        places = range(*tag.span())
        first = next((place for place in places if place in covered), None)
        drawn[tag.start() : tag.end()] = [""] * len(places)
        drawn[tag.start() if first is None else first] = "\n" if first is None else "↵\n"
    return drawn


def short_title(text: str, n_characters: int) -> str:
    """The text in one line, without HTML tags, cut after a word."""
    line = visible(" ".join(_TAG.sub(" ", text).split()) or text)
    if len(line) <= n_characters:
        return line
    start = line[: n_characters + 1]
    return f"{start.rpartition(' ')[0] or start[:-1]} …"


def special_token_scores(explanation: Explanation) -> dict[str, float]:
    """The scores of tokens that are not words, such as [CLS], [SEP] and padding."""
    document = explanation.document
    special = {piece for piece, word in zip(document.pieces, document.words.tolist(), strict=True) if word == SPECIAL}
    return {name: value for name, value in explanation.facts.items() if name in special or name == "padding"}


def map_axes(document: Document, maps: Float[np.ndarray, "layer head query key"]) -> tuple[list[str], list[str]]:
    """The query tokens and key tokens of the maps; of an encoder-decoder, the output's start and the source."""
    names = list(document.pieces)
    if maps.shape[2] == 1 < maps.shape[3] == len(names):
        # The one query of a classic model is not a token.
        return ["query"], names
    if document.segments is None or maps.shape[2] == maps.shape[3] == len(names):
        return names, names
    sides = [[n for n, segment in zip(names, document.segments, strict=True) if segment == side] for side in (1, 0)]
    return sides[0], sides[1]


def visible(text: str) -> str:
    """The text without control characters, direction marks and characters that UTF-8 or XML cannot hold."""
    return _CONTROL.sub("�", text)


def widest_interval(explanation: Explanation) -> str:
    """The largest half-width of the method's 95 % confidence intervals."""
    if explanation.error is None:
        return "—"
    return half_width(explanation, float(explanation.error.max(initial=0.0)))


def half_width(explanation: Explanation, error: float | None) -> str:
    """The half-width of one interval; a sampled score is never called exact, even if its samples are all equal."""
    if error is None:
        return "—"
    sampled = "effective_samples" in explanation.facts
    return "exact" if error == 0 and not sampled else f"± {error:.2g}"


def model_passes(explanation: Explanation) -> str:
    """The cost of the explanation: forward and backward passes, and masks."""
    facts = explanation.facts
    parts = [f"{facts[key]:,.0f} {name}" for key, name in _COSTS.items() if facts.get(key)]
    return " + ".join(parts) or "0 fwd"


_COSTS = {"forwards": "fwd", "backwards": "bwd", "masks": "masks"}
