"""Rationales: the evidence that people marked, as units of a document."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool

from heedful.document import SPECIAL, Document, Unit
from heedful.errors import BadInput


@final
@dataclass(frozen=True)
class Box:
    """A box in an image of `width` × `height` pixels: from the left and top edge, up to the right and bottom one.

    The edges are those of PIL's `crop`: left ≤ x < right and top ≤ y < bottom.
    """

    left: int
    top: int
    right: int
    bottom: int
    width: int
    height: int


Rationale = tuple[tuple[int, int], ...] | Box
"""Spans of characters (start, end), end not included, or a box. The spans of a pair index into both texts, joined by a
line break."""


def marked_units(document: Document, unit: Unit, rationale: Rationale) -> Bool[np.ndarray, "unit"]:
    """Which units people marked: those with a token that overlaps a span, or a patch in the box.

    A span that cuts a word marks the whole word; one marked occurrence marks the type. A patch is in the box if its
    centre is, assuming that the model's processor resized the whole image without cropping. The part of a text that
    the model does not read cannot be marked. If nothing is marked, or a span does not fit the text, that is an error.
    """
    if isinstance(rationale, Box) != (document.picture is not None):
        raise BadInput(f"A text is marked by spans and an image by a Box; {rationale!r} does not fit this document.")
    inside = _in_box(document, rationale) if isinstance(rationale, Box) else _in_spans(document, rationale)
    units = document.unit_of(unit)
    marked = np.zeros(document.n_units(unit), dtype=bool)
    marked[units[inside & (units != SPECIAL)]] = True
    if not marked.any():
        raise BadInput(_why_nothing_is_marked(document, rationale))
    return marked


def _in_spans(document: Document, spans: tuple[tuple[int, int], ...]) -> Bool[np.ndarray, "token"]:
    length = len(document.text)
    starts, ends = np.array(document.spans, dtype=np.int64).reshape(-1, 2).T
    inside = np.zeros(len(document.ids), dtype=bool)
    for start, end in spans:
        if not 0 <= start < end <= length:
            raise BadInput(
                f"The span ({start}, {end}) does not fit a text of {length} characters; "
                "give (start, end) with 0 ≤ start < end ≤ length."
            )
        if not document.text[start:end].strip():
            raise BadInput(
                f"The span ({start}, {end}) contains only white space; check that the spans belong to this text."
            )
        inside |= (starts < ends) & (starts < end) & (ends > start)
    return inside


def _in_box(document: Document, box: Box) -> Bool[np.ndarray, "token"]:
    assert document.picture is not None
    if not (0 <= box.left < box.right <= box.width and 0 <= box.top < box.bottom <= box.height):
        raise BadInput(
            f"{box} does not fit its own image; it needs 0 ≤ left < right ≤ width and 0 ≤ top < bottom ≤ height."
        )
    rows, columns = document.picture.grid
    across = _centres_between(box.left, box.right, columns, box.width)
    down = _centres_between(box.top, box.bottom, rows, box.height)
    return (document.words != SPECIAL) & np.outer(down, across).ravel()[document.words]


def _centres_between(low: int, high: int, n_patches: int, size: int) -> Bool[np.ndarray, "_"]:
    """Which patches along an edge of `size` pixels have their centre in the range; in integers, so exactly."""
    centres = (2 * np.arange(n_patches) + 1) * size
    return (2 * n_patches * low <= centres) & (centres < 2 * n_patches * high)


def _why_nothing_is_marked(document: Document, rationale: Rationale) -> str:
    if isinstance(rationale, Box):
        assert document.picture is not None
        rows, columns = document.picture.grid
        return f"No patch of the {rows}×{columns} has its centre in {rationale}, so nothing is marked."
    if not rationale:
        return "The rationale has no spans; use None for a text that nobody marked."
    end = max((end for _, end in document.spans), default=0)
    if min(start for start, _ in rationale) >= end:
        return (
            f"The model reads {end} of the text's {len(document.text)} characters, and the first of the "
            f"{len(rationale)} marked spans begins at {min(start for start, _ in rationale)}, so nothing is marked."
        )
    return f"The model reads no character of the {len(rationale)} marked spans, so nothing is marked."
