"""The page of attention heads: the map, the pattern and the lines of every head."""

from base64 import b64encode
from typing import Any, NamedTuple, final

import numpy as np
from jaxtyping import Float, UInt8, UInt16

from heedful.document import Document, Unit
from heedful.document.units import unit_maps
from heedful.errors import BadInput
from heedful.models.head_patterns import CLEAR, CLEARLY_BROAD, PATTERNS, Heads, score_heads
from heedful.render.head_arcs import N_LINES, THRESHOLD, token_label
from heedful.render.templating import fill_template

BUDGET = 8_000_000
"""The maximum size of all maps on the page, in base64 characters."""
_SIDES = (64, 32, 16)
_ENOUGH = 8


@final
class Packed(NamedTuple):
    """Maps in few bytes: every weight as n/255 of its row's peak, or block means and the largest weights of each row.

    `share` is the share of the attention on the text in the kept weights; `keys` is None if all weights are kept.
    """

    peaks: Float[np.ndarray, "map query"]
    weights: UInt8[np.ndarray, "map query kept"]
    keys: UInt16[np.ndarray, "map query kept"] | None
    small: UInt8[np.ndarray, "map side side"] | None
    block: int
    share: float


def gallery_page(
    document: Document,
    maps: Float[np.ndarray, "layer head query key"],
    heads: Heads | None = None,
    unit: Unit = "token",
) -> str:
    """The gallery of a document's maps; heads are named by their scores over a corpus, or else over this document.

    Between larger units, maps are those of `unit_maps`; heads are always scored on tokens.

    The maps take at most 8 MB (`BUDGET`) of the page. If they fit, the page has every weight; otherwise thumbnails are
    block means and each row keeps as many of its largest weights as fit, and the page says so.
    """
    if heads is None:
        scores, uniform = score_heads(document, maps)
        heads = Heads(PATTERNS, scores, None, uniform, 1, "")
    _check_sizes(document, maps, heads)
    n_layers, n_heads = maps.shape[:2]
    names, _, maps = (document.pieces, (), maps) if unit == "token" else unit_maps(document, unit, maps)
    packed = _pack(_with_means(maps, len(names)))
    tokens = [token_label(name) for name in names]
    context = {
        "text": document.text,
        "note_sentences": document.notes,
        "heads": heads,
        "unit": unit,
        "n_layers": n_layers,
        "n_heads": n_heads,
        "special_sentence": special_sentence(heads),
        "packed": packed,
        "tokens": tokens,
        "clear": CLEAR,
        "clearly_broad": CLEARLY_BROAD,
        "thumbnails": _thumbnails(heads),
        "data": _script_data(tokens, heads, packed),
    }
    return fill_template("heads.html", context)


def special_sentence(heads: Heads) -> str:
    """How much more attention special tokens get than words; empty where there are none."""
    if heads.special is None:
        return ""
    per_token, per_word, per_whole, split = heads.special
    times = f"A special token gets {per_token:.2f} times the attention of another token"
    others = f", {per_word:.2f} times that of a word and {per_whole:.2f} times that of a word of one piece"
    return f"{times}{others if split else ''}."


def heads_cell(heads: Heads) -> str:
    """The name of every head, for a notebook cell; the tint is the excess of its clearest pattern."""
    return fill_template("heads_cell.html", {"heads": heads, "layers": _thumbnails(heads)})


def _check_sizes(document: Document, maps: Float[np.ndarray, "layer head query key"], heads: Heads) -> None:
    n_layers, n_heads, n_queries, _ = maps.shape
    n = len(document.ids)
    if n_queries < n:
        raise BadInput(f"The maps have {n_queries} rows for {n} tokens; give one row for each token.")
    if heads.scores.shape[:2] != (n_layers, n_heads):
        scored = " × ".join(str(size) for size in heads.scores.shape[:2])
        raise BadInput(f"The maps have {n_layers} × {n_heads} heads and the scores {scored}; they must match.")


def _script_data(tokens: list[str], heads: Heads, packed: Packed) -> dict[str, Any]:
    """What gallery.js reads: names, scores and the packed maps."""
    n_layers, n_heads, n_patterns = heads.scores.shape
    return {
        "tokens": tokens,
        "layers": n_layers,
        "heads": n_heads,
        "patterns": heads.patterns,
        "names": [name for row in heads.names for name in row],
        "scores": np.round(heads.scores, 4).reshape(-1, n_patterns).tolist(),
        "clear": heads.clear.reshape(-1, n_patterns).astype(int).tolist(),
        "lines": N_LINES,
        "threshold": THRESHOLD,
        "kept": packed.weights.shape[2],
        "peaks": _text(packed.peaks.astype("<f4")),
        "weights": _text(packed.weights),
        "keys": None if packed.keys is None else _text(packed.keys.astype("<u2")),
        "small": None if packed.small is None else _text(packed.small),
        "side": len(tokens) if packed.small is None else packed.small.shape[1],
    }


def _text(numbers: np.ndarray) -> str:
    return b64encode(numbers.tobytes()).decode("ascii")


def _with_means(maps: Float[np.ndarray, "layer head query key"], n: int) -> list[Float[np.ndarray, "map token token"]]:
    """For each layer its heads over the document's own tokens, then their mean, which kept weights cannot give."""
    own = []
    for layer in maps:
        cut = np.zeros((len(layer) + 1, n, n), dtype=np.float32)
        seen = layer[:, :n, :n]
        cut[:-1, :, : seen.shape[2]] = seen
        cut[-1] = cut[:-1].mean(axis=0)
        if not np.isfinite(cut).all():
            raise BadInput("The attention has values that are not finite; check the model's weights.")
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


def _thumbnails(heads: Heads) -> list[list[dict[str, Any]]]:
    """For each layer its heads, with names and captions."""
    n_heads = heads.scores.shape[1]
    shares = [index for index, pattern in enumerate(heads.patterns) if pattern != "broad"]
    excess, layers = heads.excess, []
    for layer, names in enumerate(heads.names):
        row = []
        for head, name in enumerate(names):
            best = max(shares, key=excess[layer, head].__getitem__)
            caption = _caption(heads, heads.scores[layer, head], name, best)
            title = f"layer {layer}, head {head}: {name} {caption}"
            view = {"index": layer * n_heads + head, "name": name, "caption": caption, "title": title}
            row.append({**view, "strength": max(0.0, float(excess[layer, head, best]))})
        layers.append(row)
    return layers


def _caption(heads: Heads, scores: Float[np.ndarray, "pattern"], name: str, best: int) -> str:
    """The head's score on its own pattern, and the ratio of its clearest pattern to uniform attention."""
    clearest, ratio = heads.patterns[best], scores[best] / max(float(heads.uniform[best]), 1e-9)
    # A ratio to a uniform score of zero does not exist; the score itself is shown.
    times = f"×{ratio:,.0f}" if ratio >= 10 else f"×{ratio:.1f}"
    times = times if heads.uniform[best] > 0 else f"{scores[best]:.2f}"
    own = f"{scores[heads.patterns.index(name)]:.2f}" if name in heads.patterns else ""
    return ", ".join(part for part in (own, times if name == clearest else f"{clearest} {times}") if part)
