"""The attention of one head as lines between two columns of tokens, an SVG file."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput
from heedful.render.templating import fill_template
from heedful.render.text_strip import visible

N_LINES = 1500
THRESHOLD = 0.05
_ROW, _COLUMN, _GAP, _TOP, _FOOT = 16, 170, 200, 44, 40
_LONGEST = 24


def arcs_svg(
    tokens: Sequence[str],
    matrix: Float[np.ndarray, "query key"],
    title: str = "",
    threshold: float = THRESHOLD,
    n_lines: int = N_LINES,
) -> str:
    """One head's attention: tokens that attend on the left, tokens attended to on the right, as in BertViz.

    The opacity of a line is its weight divided by the largest weight. Weights below `threshold` times the largest are
    not drawn, then all but the `n_lines` largest; the caption says how many, and their share of the attention on these
    tokens. Rows and columns beyond the tokens are not drawn.

    Reference: Vig, "A Multiscale Visualization of Attention in the Transformer Model", ACL 2019, arXiv:1906.05714.
    Differs from the paper: one head at a time, and opacity is relative to the largest weight.
    """
    weights = matrix[: len(tokens), : len(tokens)]
    if not weights.size:
        raise BadInput("There are no tokens with attention to draw; give at least one.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise BadInput("Attention weights must be finite and not negative.")
    order = np.argsort(-weights, axis=None, kind="stable")[:n_lines]
    order = order[(weights.flat[order] >= threshold * weights.max()) & (weights.flat[order] > 0)]
    height = _TOP + _ROW * max(weights.shape) + _FOOT
    context = {
        "title": visible(title),
        "width": 2 * _COLUMN + _GAP,
        "height": height,
        "left": _COLUMN,
        "right": _COLUMN + _GAP,
        "top": _TOP,
        "bottom": height - _FOOT,
        "lines": _lines(weights, order),
        "queries": _column(tokens[: weights.shape[0]]),
        "keys": _column(tokens[: weights.shape[1]]),
        "captions": _captions(weights, order),
    }
    return fill_template("arcs.svg", context)


def _lines(weights: Float[np.ndarray, "query key"], order: np.ndarray) -> list[dict[str, Any]]:
    """The lines to draw, the largest weight last, so that it is on top."""
    largest = float(weights.max())
    lines = []
    for index in order[::-1].tolist():
        query, key = divmod(index, weights.shape[1])
        opacity = float(weights[query, key]) / largest
        lines.append({"start": _middle(query), "end": _middle(key), "opacity": opacity})
    return lines


def _captions(weights: Float[np.ndarray, "query key"], order: np.ndarray) -> list[str]:
    captions = [f"{len(order):,} lines; largest weight {float(weights.max()):.3g}."]
    n_omitted = int((weights > 0).sum()) - len(order)
    if n_omitted:
        share = 1 - float(weights.flat[order].sum()) / float(weights.sum())
        captions.append(f"{n_omitted:,} smaller weights are not drawn: {share:.1%} of the attention on these tokens.")
    return captions


def _column(tokens: Sequence[str]) -> list[tuple[str, int]]:
    return [(token_label(token), _middle(row) + 4) for row, token in enumerate(tokens)]


def token_label(token: str) -> str:
    """A token as one short line without control characters; white space is drawn as ␣."""
    text = " ".join(visible(token).split()) or "␣"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _middle(row: int) -> int:
    return _TOP + _ROW * row + _ROW // 2
