"""The page of many explanations: words, mistakes, and every text behind filters, in one file that fetches nothing."""

from typing import Any

from heedful.explanations import Explanations
from heedful.explanations.refusal import Refusal
from heedful.render.overview import classes_of, overview
from heedful.render.templating import fill_template
from heedful.render.text_strip import pieces, visible

_FAINT = 0.03
"""Words below this share of the strongest score in their text have no colour, which halves the page."""


def texts_page(explanations: Explanations) -> str:
    """The whole page."""
    sentences, targets, mistakes = overview(explanations, 15)
    used = {number for number in (*explanations.predicted, *explanations.labels) if number is not None}
    data = {
        # Of a language model every token is a class, so only those that occur are listed.
        "classes": {number: visible(explanations.classes[number]) for number in sorted(used)},
        "texts": [_text(explanations, place) for place in range(len(explanations))],
        "mistakes": [_text(mistakes, place) for place in range(min(len(mistakes), 10))],
    }
    return fill_template("texts.html", {"sentences": sentences, "targets": targets, "data": data, "is_page": True})


def texts_fragment(explanations: Explanations) -> str:
    """The counts and the strongest words, for a notebook cell."""
    sentences, targets, _ = overview(explanations, 8)
    return fill_template("texts_fragment.html", {"sentences": sentences, "targets": targets, "is_page": False})


def _text(explanations: Explanations, place: int) -> list[Any]:
    """Heading, predicted class, label, outcome, pieces of text with their colours in per cent, the largest |score|."""
    item, numbers = explanations[place], (explanations.predicted[place], explanations.labels[place])
    heading = visible(f"{explanations.ids[place]}: {classes_of(explanations, place)}")
    if isinstance(item, Refusal):
        return [f"{heading} {visible(item.reason)}", *numbers, "refused", [[visible(item.text), 0]], 0]
    parts: list[list[Any]] = [["", 0]]
    for piece in pieces(item):
        colour = 0 if piece.strength is None or abs(piece.strength) < _FAINT else round(100 * piece.strength)
        if colour == parts[-1][1]:
            parts[-1][0] += piece.text
        else:
            parts.append([piece.text, colour])
    outcome = "" if None in numbers else "right" if numbers[0] == numbers[1] else "wrong"
    return [heading, *numbers, outcome, parts, float(f"{abs(item.scores).max(initial=0.0):.4g}")]
