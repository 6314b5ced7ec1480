"""The head gallery: every head's map, its pattern, and its lines from token to token, on one self-contained page."""

import json
from base64 import b64encode
from html import escape
from importlib.resources import files
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float, UInt8, UInt16

from heedful.document import Document
from heedful.errors import BadInput
from heedful.models.head_patterns import CLEAR, CLEARLY_BROAD, PATTERNS, Heads, score_heads
from heedful.render.head_arcs import N_LINES, THRESHOLD, label
from heedful.render.text_strip import visible

BUDGET = 8_000_000
"""The most characters that the maps may take on the page, as base64."""
_SIDES = (64, 32, 16)
_ENOUGH = 8


@final
class Packed(NamedTuple):
    """Maps in few bytes: every weight as n/255 of its row's peak, or small averages and each row's strongest weights.

    `share` is the part of the attention on the text that the kept weights hold; `keys` are None where all are kept.
    """

    peaks: Float[np.ndarray, "map query"]
    weights: UInt8[np.ndarray, "map query kept"]
    keys: UInt16[np.ndarray, "map query kept"] | None
    small: UInt8[np.ndarray, "map side side"] | None
    block: int
    share: float


def gallery_page(
    document: Document, maps: Float[np.ndarray, "layer head query key"], heads: Heads | None = None
) -> str:
    """The gallery of a document's maps, named by their scores over a corpus, or over this document if None is given.

    The maps take at most 8 MB (`BUDGET`) of the page. Where they fit, every weight is on it; otherwise thumbnails are
    block averages and each row keeps its strongest weights, as many as fit; the page says so.
    """
    if heads is None:
        scores, uniform = score_heads(document, maps)
        heads = Heads(PATTERNS, scores, None, uniform, 1, "")
    n_layers, n_heads, n_queries, _ = maps.shape
    n = len(document.ids)
    if n_queries < n:
        raise BadInput(f"A gallery is of tokens looking at tokens: {n} tokens need as many rows, not {n_queries}.")
    if heads.scores.shape[:2] != (n_layers, n_heads):
        scored = " × ".join(str(size) for size in heads.scores.shape[:2])
        raise BadInput(
            f"Maps of {n_layers} × {n_heads} heads were given with the scores of {scored}; give a matching pair."
        )
    packed = _pack(_with_means(maps, n))
    data = {
        "tokens": [label(piece) for piece in document.pieces],
        "layers": n_layers,
        "heads": n_heads,
        "patterns": heads.patterns,
        "names": [name for row in heads.names for name in row],
        "scores": np.round(heads.scores, 4).reshape(n_layers * n_heads, -1).tolist(),
        "clear": heads.clear.reshape(n_layers * n_heads, -1).astype(int).tolist(),
        "lines": N_LINES,
        "threshold": THRESHOLD,
        "kept": packed.weights.shape[2],
        "peaks": _text(packed.peaks.astype("<f4")),
        "weights": _text(packed.weights),
        "keys": None if packed.keys is None else _text(packed.keys.astype("<u2")),
        "small": None if packed.small is None else _text(packed.small),
        "side": n if packed.small is None else packed.small.shape[1],
    }
    embedded = json.dumps(data).replace("<", "\\u003c").replace("&", "\\u0026")
    notes = "".join(f'<p class="note">{escape(visible(note))}</p>' for note in document.notes)
    parts = [
        f'<h1 dir="auto">{escape(visible(document.text[:300]))}</h1>{notes}',
        _about(heads, packed, n),
        "<h2>Every head</h2>",
        _filter(heads),
        _thumbnails(heads),
        "<h2>One head</h2>",
        _one_head(n_layers, n_heads),
        "<h2>Heads and patterns</h2>",
        _table(heads),
    ]
    style, script = _asset("page.css") + _asset("gallery.css"), _asset("page.js") + _asset("gallery.js")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>heedful: heads on {escape(visible(document.text[:60]))}</title><style>{style}</style></head>"
        f'<body class="heedful">{"".join(parts)}<script type="application/json" id="gallery">{embedded}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return (files("heedful.render") / name).read_text(encoding="utf-8")


def _text(numbers: np.ndarray) -> str:
    return b64encode(numbers.tobytes()).decode("ascii")


def _with_means(maps: Float[np.ndarray, "layer head query key"], n: int) -> list[Float[np.ndarray, "map token token"]]:
    """For each layer its heads over the document's own tokens, then their mean, since kept weights cannot give it."""
    own = []
    for layer in maps:
        cut = np.zeros((len(layer) + 1, n, n), dtype=np.float32)
        seen = layer[:, :n, :n]
        cut[:-1, :, : seen.shape[2]] = seen
        cut[-1] = cut[:-1].mean(axis=0)
        if not np.isfinite(cut).all():
            raise BadInput("The attention to draw is not made of finite numbers; check the model's weights.")
        own.append(cut)
    return own


def _pack(layers: list[Float[np.ndarray, "map token token"]]) -> Packed:
    n_maps, n = sum(len(layer) for layer in layers), layers[0].shape[1]
    room = BUDGET * 3 // 4 - 16 - 4 * n_maps * n
    peaks = np.concatenate([layer.max(axis=2) for layer in layers])
    if n_maps * n * n <= room:
        return Packed(peaks, np.concatenate([_bytes(layer, layer.max(axis=2)) for layer in layers]), None, None, 1, 1.0)
    block = n_kept = 0
    for side in _SIDES:
        block = -(-n // side)
        n_kept = (room - n_maps * (-(-n // block)) ** 2) // (3 * n_maps * n)
        if n_kept >= _ENOUGH:
            break
    if n_kept < 1:
        raise BadInput(f"{n_maps:,} maps of {n:,} tokens do not fit on a page; give fewer layers or a shorter text.")
    weights, keys, small, held, total = [], [], [], 0.0, 0.0
    for layer in layers:
        most = np.argpartition(layer, n - n_kept, axis=2)[:, :, n - n_kept :]
        chosen = np.take_along_axis(layer, most, axis=2)
        weights.append(_bytes(chosen, layer.max(axis=2)))
        keys.append(most.astype(np.uint16))
        means = _averaged(layer, block)
        small.append(_bytes(means, np.repeat(means.max(axis=(1, 2))[:, None], means.shape[1], axis=1)))
        held, total = held + float(chosen.sum()), total + float(layer.sum())
    share = held / total if total else 1.0
    return Packed(peaks, np.concatenate(weights), np.concatenate(keys), np.concatenate(small), block, share)


def _bytes(
    weights: Float[np.ndarray, "map query kept"], peaks: Float[np.ndarray, "map query"]
) -> UInt8[np.ndarray, "map query kept"]:
    scale = np.where(peaks > 0, 255 / np.where(peaks > 0, peaks, 1), 0)[:, :, None]
    return np.rint(weights * scale).astype(np.uint8)


def _averaged(layer: Float[np.ndarray, "map query key"], block: int) -> Float[np.ndarray, "map side side"]:
    starts = np.arange(0, layer.shape[1], block)
    sizes = np.minimum(block, layer.shape[1] - starts)
    summed = np.add.reduceat(np.add.reduceat(layer, starts, axis=1), starts, axis=2)
    return summed / (sizes[:, None] * sizes)


def _about(heads: Heads, packed: Packed, n: int) -> str:
    corpus = "this text alone" if heads.n_texts == 1 else f"{heads.n_texts:,} texts"
    model = f" Model <code>{escape(heads.model)}</code>." if heads.model else ""
    if packed.keys is None:
        kept = "Weights are rounded to 1/255 of the strongest in their row."
    else:
        kept = (
            f"All weights of {n:,} tokens would not fit: a thumbnail's point is the mean over {packed.block} × "
            f"{packed.block} tokens, and of each row the {packed.keys.shape[2]} strongest weights are kept, "
            f"{packed.share:.0%} of the attention on the text."
        )
    return (
        "<p>Every square is one attention head reading this text: row = the token that looks, column = the token "
        "looked at, strong colour = much attention, each head on its own scale. Attention shows where a head looks; it "
        "is not by itself an explanation of what the model answers.</p>"
        f'<p class="legend">Scores are over {corpus}. A head is named for the pattern furthest above uniform '
        f"attention, (score − uniform) / (1 − uniform), if that is at least {CLEAR:g}; else <i>broad</i> if its "
        f"entropy is at least {CLEARLY_BROAD:g} of the uniform one; else <i>other</i>. ×n: so many times the score of "
        "uniform attention, which looks at all keys alike, padding included. "
        f"{kept}{model}</p>"
    )


def _filter(heads: Heads) -> str:
    options = "".join(f'<option value="{index}">{escape(name)}' for index, name in enumerate(heads.patterns))
    return (
        '<p><label>Pattern <select id="pattern"><option value="">any'
        f'{options}</select></label> <span id="n-heads" class="legend" role="status"></span></p>'
    )


def _thumbnails(heads: Heads) -> str:
    n_layers, n_heads, _ = heads.scores.shape
    names, excess = heads.names, heads.excess
    shares = [index for index, pattern in enumerate(heads.patterns) if pattern != "broad"]
    cells = ["<span></span>", *(f"<span>head {head}</span>" for head in range(n_heads))]
    for layer in range(n_layers):
        cells.append(f"<span>layer {layer}</span>")
        for head in range(n_heads):
            best = max(shares, key=lambda index: float(excess[layer, head, index]))
            name = names[layer][head]
            caption = _caption(heads, heads.scores[layer, head], name, best)
            told = escape(f"layer {layer}, head {head}: {name} {caption}")
            cells.append(
                f'<button type="button" data-head="{layer * n_heads + head}" aria-label="{told}" title="{told}">'
                f"<canvas></canvas><b>{escape(name)}</b><small>{escape(caption)}</small></button>"
            )
    return f'<div class="wide" id="every"><div id="thumbnails" style="--n:{n_heads}">{"".join(cells)}</div></div>'


def _caption(heads: Heads, scores: Float[np.ndarray, "pattern"], name: str, best: int) -> str:
    """A head's score on the pattern it is named for, and how many times uniform attention its furthest pattern is."""
    furthest, ratio = heads.patterns[best], scores[best] / max(float(heads.uniform[best]), 1e-9)
    # Where uniform attention scores nothing, the score itself says all there is to say.
    times = f"×{ratio:,.0f}" if ratio >= 10 else f"×{ratio:.1f}"
    times = times if heads.uniform[best] > 0 else f"{scores[best]:.2f}"
    own = f"{scores[heads.patterns.index(name)]:.2f}" if name in heads.patterns else ""
    return ", ".join(part for part in (own, times if name == furthest else f"{furthest} {times}") if part)


def _one_head(n_layers: int, n_heads: int) -> str:
    layers = "".join(f'<option value="{layer}">{layer}' for layer in range(n_layers))
    heads = "".join(f'<option value="{head}">{head}' for head in range(n_heads))
    return (
        f'<p><label>Layer <select id="layer">{layers}</select></label> <label>Head <select id="head">{heads}'
        f'<option value="{n_heads}">mean of heads</select></label> <b id="name"></b></p>'
        '<div id="one"><section><p><label>Size of a token <input id="zoom" type="range" min="1" max="18" value="1">'
        '</label></p><div id="map" tabindex="0" aria-label="attention map"><div id="columns"></div>'
        '<div id="rows"></div><canvas id="large" role="img"></canvas></div><p id="cell" class="legend" role="status">'
        '&nbsp;</p></section><section><p><button type="button" id="save">Save these lines as SVG</button></p>'
        '<div id="lines" tabindex="0" aria-label="lines from tokens that look, left, to tokens looked at, right">'
        '<svg id="arcs" direction="ltr"></svg></div><p id="told" class="legend" role="status">&nbsp;</p></section>'
        '</div><p class="legend">Point at a token to see only its lines, click to keep them; or click a row of the '
        "map. By keyboard: arrows walk over the squares above and over the tokens of the lines, left and right change "
        "the side, Escape lets go.</p>"
    )


def _table(heads: Heads) -> str:
    n_heads = heads.scores.shape[1]
    head = "".join(f'<th><button type="button">{escape(pattern)}</button>' for pattern in heads.patterns)
    rows = []
    for layer, row in enumerate(heads.scores):
        for number, scores in enumerate(row):
            cells = "".join(
                f'<td class=number data-v="{score!r}">{score:.3f}{_width(heads, layer, number, index)}'
                for index, score in enumerate(scores.tolist())
            )
            index = layer * n_heads + number
            rows.append(
                f'<tr data-head="{index}"><td data-v="{index}">{index + 1}<td><button type="button">layer {layer}, '
                f"head {number}</button>{cells}</tr>"
            )
    uniform = "".join(f"<td class=number>{score:.3f}" for score in heads.uniform.tolist())
    return (
        "<p>Shares of attention, except broad, which is the row's entropy relative to a uniform row. Click a heading "
        "to sort, a head to see it. Below: what uniform attention over the same keys would score.</p>"
        '<div class="wide"><table class="sortable" id="scores"><thead><tr><th><button type="button">#</button><th>head'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody><tfoot><tr><td><td><i>uniform</i>{uniform}</tr></tfoot>"
        "</table></div>"
    )


def _width(heads: Heads, layer: int, head: int, index: int) -> str:
    return "" if heads.error is None else f" <small>± {heads.error[layer, head, index]:.2g}</small>"
