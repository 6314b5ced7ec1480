"""The text of an explanation in pieces: each unit with its score, and the text between units."""

import re
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float

from heedful.document import SPECIAL, Document
from heedful.explanation import Explanation
from heedful.render.palette import strengths

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


@final
class Piece(NamedTuple):
    """A piece of text with its score; the strength in [−1, 1] is None where no unit is."""

    text: str
    strength: float | None
    score: float | None = None
    error: float | None = None


def pieces(explanation: Explanation) -> list[Piece]:
    """The text up to the last character that the model read, then an ellipsis if the text is longer."""
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


def special_token_scores(explanation: Explanation) -> dict[str, float]:
    """The scores of tokens that are not words, such as [CLS], [SEP] and padding."""
    document = explanation.document
    special = {piece for piece, word in zip(document.pieces, document.words.tolist(), strict=True) if word == SPECIAL}
    return {name: value for name, value in explanation.facts.items() if name in special or name == "padding"}


def map_axes(document: Document, maps: Float[np.ndarray, "layer head query key"]) -> tuple[list[str], list[str]]:
    """The query tokens and key tokens of the maps; of an encoder-decoder, the output's start and the source."""
    names = list(document.pieces)
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
