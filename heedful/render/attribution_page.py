"""The page of an attribution: the output, of which every part can be selected, and its sources on their tints."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float

from heedful.document import SPECIAL
from heedful.generation.attribution import Attribution
from heedful.render.attribution_figures import cell_strengths, part_names, source_names
from heedful.render.attribution_text import meaning, passes_of, value_of
from heedful.render.templating import fill_template


@final
class SourcePiece(NamedTuple):
    """A piece of the text: the source it belongs to, or None; of the output also its part."""

    text: str
    source: int | None
    part: int | None
    passage: int
    from_template: bool
    """Whether the text was added by the chat template, or is a special token."""


def attribution_page(attribution: Attribution, marks: Mapping[int, str] | None = None, legend: str = "") -> str:
    """The whole page. `marks` are parts to underline, by number, with a caption; `legend` says what it means."""
    return fill_template("attribution.html", _view(attribution, marks, legend, is_page=True))


def attribution_fragment(attribution: Attribution, marks: Mapping[int, str] | None = None, legend: str = "") -> str:
    """The same for a notebook cell."""
    return fill_template("attribution.html", _view(attribution, marks, legend, is_page=False))


def _view(attribution: Attribution, marks: Mapping[int, str] | None, legend: str, is_page: bool) -> dict[str, Any]:
    marks, scores = marks or {}, attribution.scores
    before, written = _pieces(attribution)
    strongest = int(np.abs(scores).max(axis=1, initial=0.0).argmax())
    return {
        "is_page": is_page,
        "attribution": attribution,
        "legend": legend,
        "marks": marks,
        "meaning": meaning(attribution),
        "cost": passes_of(attribution),
        "blocks": [(passage, _stripped(pieces)) for passage, pieces in groupby(before, lambda piece: piece.passage)],
        "has_template": any(piece.from_template for piece in before),
        "parts": [(part, list(pieces)) for part, pieces in groupby(written, lambda piece: piece.part)],
        "labels": part_names(attribution),
        "columns": source_names(attribution),
        "rows": cell_strengths(scores).tolist(),
        "data": {
            "first": min(marks, default=strongest),
            "values": [value_of(attribution, number) for number in range(len(attribution.outputs))],
            "captions": [marks.get(number, "") for number in range(len(attribution.outputs))],
            "sources": source_names(attribution),
            "scores": [[_short(score) for score in row] for row in scores.tolist()],
            "errors": None if attribution.error is None else _errors(attribution, attribution.error),
        },
    }


def _short(number: float) -> float:
    return float(f"{number:.4g}")


def _errors(attribution: Attribution, error: Float[np.ndarray, "output source"]) -> list[list[float | None]]:
    """The half-widths; None where the score is exact, as nothing was sampled."""
    return [
        [None if width == 0 and "effective_samples" not in row.facts else _short(width) for width in widths]
        for row, widths in zip(attribution.explanations, error.tolist(), strict=True)
    ]


def _stripped(pieces: Iterable[SourcePiece]) -> list[SourcePiece]:
    """The pieces of a paragraph, without white space around them."""
    shown = list(pieces)
    while shown and not shown[-1].text.strip():
        shown.pop()
    shown[-1:] = [piece._replace(text=piece.text.rstrip()) for piece in shown[-1:]]
    shown[:1] = [piece._replace(text=piece.text.lstrip()) for piece in shown[:1]]
    return shown


def _pieces(attribution: Attribution) -> tuple[list[SourcePiece], list[SourcePiece]]:
    """What was read and what was written, in pieces; neighbouring tokens of one source are one piece."""
    document = attribution.document
    shown = attribution.explanations[0]
    n_read = len(document.ids) - attribution.n_written
    part_of = {n_read + place: part for part, group in enumerate(attribution.positions) for place in group}
    sources = shown.document.unit_of(shown.unit).tolist()
    passages = [SPECIAL] * len(sources) if document.passages is None else document.passages.tolist()
    pieces: tuple[list[SourcePiece], list[SourcePiece]] = ([], [])
    end = 0
    for token, (start, stop) in enumerate(document.spans):
        side = pieces[token >= n_read]
        source = None if sources[token] == SPECIAL else sources[token]
        special = token < n_read and document.words[token] == SPECIAL
        piece = SourcePiece("", source, part_of.get(token), passages[token], bool(special))
        # Several tokens may share a character, such as the bytes of an emoji; it is shown once.
        text, between = document.text[max(start, end) : stop], document.text[end : max(start, end)]
        last = side[-1] if side else None
        if last is None and token >= n_read:
            between = ""
        same = last is not None and last._replace(text="") == piece
        if not same and between and last is not None and (last.part is None or last.part != piece.part):
            side.append(SourcePiece(between, None, None, last.passage, last.from_template and piece.from_template))
            between = ""
        if same and last is not None:
            side[-1] = last._replace(text=last.text + between + text)
        elif text or piece.part is not None:
            side.append(piece._replace(text=between + text))
        end = max(end, stop)
    return pieces
