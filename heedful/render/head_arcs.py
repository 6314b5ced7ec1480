"""Who looks at whom, as lines between two columns of tokens; plain SVG, made without a library."""

import re
from collections.abc import Sequence
from html import escape

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput
from heedful.render.text_strip import visible

N_LINES = 1500
THRESHOLD = 0.05
_ROW, _COLUMN, _GAP, _TOP, _FOOT = 16, 170, 200, 44, 40
_LONGEST = 24
# XML has no way to write these two, which Python and HTML do.
_NOT_XML = re.compile("[\ufffe\uffff]")
_STYLE = (
    ".heedful-arcs{font:12px system-ui,sans-serif}.heedful-arcs .paper{fill:#fff}.heedful-arcs text{fill:#1a1a1a}"
    ".heedful-arcs line{stroke:#005aa0;stroke-width:1.5}.heedful-arcs .small{font-size:11px}"
    "@media(prefers-color-scheme:dark){.heedful-arcs .paper{fill:#16181c}.heedful-arcs text{fill:#e8e8e8}"
    ".heedful-arcs line{stroke:#78beff}}"
)


def arcs_svg(
    tokens: Sequence[str],
    matrix: Float[np.ndarray, "query key"],
    title: str = "",
    threshold: float = THRESHOLD,
    n_lines: int = N_LINES,
) -> str:
    """One head's attention: tokens that look on the left, tokens looked at on the right, as in BertViz.

    A line's opacity is its weight divided by the largest. Weights below `threshold` times the largest are left out,
    then all but the `n_lines` strongest; a sentence under the drawing says how many, and what share of the attention
    on these tokens. Rows and columns beyond the tokens are not drawn.

    Reference: Vig, "A Multiscale Visualization of Attention in the Transformer Model", ACL 2019, arXiv:1906.05714.
    Differs from the paper: one head at a time, and opacity is relative to the strongest line.
    """
    drawn = matrix[: len(tokens), : len(tokens)]
    if not drawn.size:
        raise BadInput("There is no token with attention to draw; give at least one.")
    if not np.isfinite(drawn).all() or (drawn < 0).any():
        raise BadInput("Attention weights are finite numbers from 0 on; others were given.")
    largest, total = float(drawn.max()), float(drawn.sum())
    order = np.argsort(-drawn, axis=None, kind="stable")[:n_lines]
    order = order[(drawn.flat[order] >= threshold * largest) & (drawn.flat[order] > 0)]
    n_left = int((drawn > 0).sum()) - len(order)
    share = 0.0 if n_left == 0 else 1 - float(drawn.flat[order].sum()) / total
    left, right, width = _COLUMN, _COLUMN + _GAP, 2 * _COLUMN + _GAP
    height = _TOP + _ROW * max(drawn.shape) + _FOOT
    # The strongest come last, so that they lie on top.
    lines = [
        f'<line x1="{left + 4}" y1="{_middle(query)}" x2="{right - 4}" y2="{_middle(key)}" '
        f'opacity="{weight / largest:.3f}"/>'
        for query, key, weight in (
            (*divmod(index, drawn.shape[1]), float(drawn.flat[index])) for index in order[::-1].tolist()
        )
    ]
    words = [
        f'<text x="{x}" y="{_middle(index) + 4}" text-anchor="{anchor}">{escape(label(token))}</text>'
        for x, anchor, n in ((left, "end", drawn.shape[0]), (right, "start", drawn.shape[1]))
        for index, token in enumerate(tokens[:n])
    ]
    foot = [f"{len(order):,} lines; the strongest is {largest:.3g}."]
    if n_left:
        foot.append(f"{n_left:,} weaker ones are left out, {share:.1%} of the attention on these tokens.")
    words += [
        f'<text class="small" x="{width / 2:g}" y="{height - _FOOT + 16 * line}" text-anchor="middle">{sentence}</text>'
        for line, sentence in enumerate(foot, start=1)
    ]
    name = escape(_written(title))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="heedful-arcs" direction="ltr" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}"><title>{name or "attention"}</title>'
        f'<style>{_STYLE}</style><rect class="paper" width="{width}" height="{height}"/>'
        f'<text x="{width / 2:g}" y="16" text-anchor="middle">{name}</text>'
        f'<text class="small" x="{left}" y="{_TOP - 10}" text-anchor="end">looks</text>'
        f'<text class="small" x="{right}" y="{_TOP - 10}" text-anchor="start">is looked at</text>'
        f"<g>{''.join(lines)}</g><g>{''.join(words)}</g></svg>\n"
    )


def label(token: str) -> str:
    """A token as one short line: nothing that steers, nothing that XML cannot hold, no bare white space."""
    text = " ".join(_written(token).split()) or "␣"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _written(text: str) -> str:
    return _NOT_XML.sub("�", visible(text))


def _middle(row: int) -> int:
    return _TOP + _ROW * row + _ROW // 2
