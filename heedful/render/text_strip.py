"""The text cut where a picture tints it."""

import re
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from heedful.document import SPECIAL, Document
from heedful.explanation import Explanation
from heedful.render.palette import strengths

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@final
class Piece(NamedTuple):
    """A stretch of text and what is known of it; strength in [−1, 1] is None where the model read nothing."""

    text: str
    strength: float | None
    score: float | None = None
    error: float | None = None


def pieces(explanation: Explanation) -> list[Piece]:
    """The text from its first character to the last that the model read, then a mark if there was more."""
    document = explanation.document
    unit_of, relative = document.unit_of(explanation.unit).tolist(), strengths(explanation.scores)
    cut: list[Piece] = []
    end = 0
    for unit, (start, stop) in zip(unit_of, document.spans, strict=True):
        # Several tokens may share a character, such as the bytes of an emoji; it is shown once.
        start = max(start, end)
        if unit == SPECIAL or stop <= start:
            continue
        if start > end:
            cut.append(Piece(visible(document.text[end:start]), None))
        error = None if explanation.error is None else float(explanation.error[unit])
        score = float(explanation.scores[unit])
        cut.append(Piece(visible(document.text[start:stop]), float(relative[unit]), score, error))
        end = stop
    if document.text[end:].strip():
        cut.append(Piece(" …", None))
    return cut


def apart(explanation: Explanation) -> dict[str, float]:
    """What tokens that are no words received: [CLS], [SEP], padding and their like."""
    document = explanation.document
    special = {piece for piece, word in zip(document.pieces, document.words.tolist(), strict=True) if word == SPECIAL}
    return {name: value for name, value in explanation.facts.items() if name in special or name == "padding"}


def axes_of(document: Document, maps: Float[np.ndarray, "layer head query key"]) -> tuple[list[str], list[str]]:
    """The tokens that look and the tokens looked at: of an encoder-decoder its output's beginning and its source."""
    names = list(document.pieces)
    if document.segments is None or maps.shape[2] == maps.shape[3] == len(names):
        return names, names
    sides = [[n for n, segment in zip(names, document.segments, strict=True) if segment == side] for side in (1, 0)]
    return sides[0], sides[1]


def visible(text: str) -> str:
    """The text without characters that steer a terminal, turn a line's direction or cannot be written as UTF-8."""
    return _CONTROL.sub("�", text)


def interval(explanation: Explanation) -> str:
    """How sure the method is, in a few characters."""
    if explanation.error is None:
        return "—"
    return half_width(explanation, float(explanation.error.max(initial=0.0)))


def half_width(explanation: Explanation, error: float | None) -> str:
    """One unit's interval; a sampled number is never called exact, however little its samples scatter."""
    if error is None:
        return "—"
    sampled = "effective_samples" in explanation.facts
    return "exact" if error == 0 and not sampled else f"± {error:.2g}"


def cost(explanation: Explanation) -> str:
    """Model runs spent: forward and backward passes, and masks."""
    facts = explanation.facts
    parts = [f"{facts[key]:,.0f} {name}" for key, name in _COSTS.items() if facts.get(key)]
    return " + ".join(parts) or "0 fwd"


_COSTS = {"forwards": "fwd", "backwards": "bwd", "masks": "masks"}
