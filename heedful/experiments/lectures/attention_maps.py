"""The lecture's attention maps: unmasked, masked, with random weights, and with exchanged tokens."""

from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.workspace import Workspace
from heedful.render.text_strip import map_axes
from heedful.render.views.numbered_map import check_legible, draw_numbered

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_WORDS = ["the", "old", "dog", "saw", "the", "cat"]
_D_E = 64
_SPREADS = (0.01, 0.03, 0.1, 0.3, 1.0)
_KINDS = ("free", "masked", "masked as printed")


@final
@dataclass(frozen=True)
class AttentionMaps(Experiment):
    """Self-attention and masked self-attention of one sequence, with all weights.

    With a text or model of the user also the maps of that model: the mean over heads of its first and its last layer.
    """

    name: ClassVar[str] = "attention-maps"
    part: ClassVar[ExperimentPart] = "lectures"
    title: ClassVar[str] = "Self-attention, masked self-attention, and attention at initialisation"
    source: ClassVar[str] = "lecture, Section 9.1; slides, permutation equivariance"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables cells, exchange, start, own."""
        rng = torch.Generator().manual_seed(workspace.seed)
        named = {word: torch.randn(_D_E, generator=rng, dtype=torch.float64) for word in dict.fromkeys(_WORDS)}
        e = torch.stack([named[word] for word in _WORDS])
        W_q, W_k = (torch.randn(_D_E, _D_E, generator=rng, dtype=torch.float64) / sqrt(_D_E) for _ in range(2))
        cells = []
        for kind in _KINDS:
            A = _attention(e, W_q, W_k, kind)
            for s, query in enumerate(_WORDS):
                for t, key in enumerate(_WORDS):
                    weight = {"s": s, "t": t, "query": query, "key": key, "attention": float(A[s, t])}
                    cells.append({"kind": kind, **weight})
        order = torch.randperm(len(e), generator=rng)
        moved = _attention(e[order], W_q, W_k, "free") @ e[order]
        still = (_attention(e, W_q, W_k, "free") @ e)[order]
        gap = float((moved - still).abs().max())
        own = _own_maps(workspace) if workspace.foreign or workspace.text is not None else []
        return {"cells": cells, "exchange": [{"gap": gap}], "start": _starts(workspace), "own": own}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        gap = column(numbers["exchange"], "gap")[0]
        first = _map(numbers, "masked as printed")[0]
        kept = np.triu(_map(numbers, "masked"), 1)
        small = column(numbers["start"], "distance", spread=_SPREADS[0])
        large = column(numbers["start"], "distance", spread=_SPREADS[-1])
        return [
            Claim(
                "masked attention gives no weight to later tokens",
                "M = −∞ for s ≤ t",
                f"largest weight on a later token {kept.max():.1e}; the first row of the mask as printed is "
                f"{'not a number' if np.isnan(first).any() else 'a law'}",
                "corrected" if np.isnan(first).all() and kept.max() == 0 else "differs",
                "The printed mask also hides the diagonal, so the first token can attend to nothing. The "
                "mask must be additive, 0 or −∞, and hide only t > s.",
                general=True,
            ),
            Claim(
                "attention is uniform at initialisation",
                "A ≈ 1/T",
                f"total variation from uniform {np.mean(small):.3f} for σ = {_SPREADS[0]:g}, {np.mean(large):.3f} for "
                f"σ = {_SPREADS[-1]:g}",
                "differs" if np.mean(small) > 0.01 else "corrected" if np.mean(large) > 0.1 else "agrees",
                "It holds only for small σ, which the source does not say: scores grow with σ², so it fails "
                "for large weights."
                if np.mean(large) > 0.1
                else "It holds for all tested σ.",
                general=True,
            ),
            Claim(
                "exchanging tokens exchanges the outputs",
                "equivariant",
                f"largest difference {gap:.1e}",
                "agrees" if gap < 1e-12 else "differs",
                "Without positional encodings attention treats its input as a set, not a sequence.",
                general=True,
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures maps, start, and own of a user's text or model."""
        drawn = figure(8.5, 3.6)
        for number, kind in enumerate(_KINDS[:2], start=1):
            axes = drawn.add_subplot(1, 2, number)
            draw_numbered(axes, _map(numbers, kind), _WORDS, _WORDS)
            axes.set_title(f"{kind} self-attention")
        start = figure(5.0, 3.0)
        axes = quiet(start.add_subplot())
        draws = [column(numbers["start"], "distance", spread=spread) for spread in _SPREADS]
        axes.plot(_SPREADS, [np.mean(values) for values in draws], "o-", color=COLOURS[0])
        axes.set(xscale="log", xlabel="σ of the entries of W_q and W_k", ylabel="total variation from uniform")
        return {"maps": drawn, "start": start, **({"own": _draw_own(numbers)} if numbers["own"] else {})}


def _own_maps(workspace: Workspace) -> list[dict[str, Cell]]:
    """The mean over heads of every weight, in the first and the last layer."""
    document = workspace.model.encode(workspace.text or " ".join(_WORDS))
    maps = workspace.model.maps(document)
    queries, keys = map_axes(document, maps)
    check_legible(queries, keys)
    rows: list[dict[str, Cell]] = []
    for layer, s, t in product(sorted({0, len(maps) - 1}), range(len(queries)), range(len(keys))):
        weight = float(maps[layer, :, s, t].mean())
        rows.append({"layer": layer + 1, "s": s, "t": t, "query": queries[s], "key": keys[t], "attention": weight})
    return rows


def _draw_own(numbers: Numbers) -> "Figure":
    rows = numbers["own"]
    layers = list(dict.fromkeys(row["layer"] for row in rows))
    queries = [str(name) for name in {row["s"]: row["query"] for row in rows}.values()]
    keys = [str(name) for name in {row["t"]: row["key"] for row in rows}.values()]
    drawn = figure((0.42 * len(keys) + 1.3) * len(layers), 1.5 + 0.42 * len(queries))
    for number, layer in enumerate(layers, start=1):
        axes = drawn.add_subplot(1, len(layers), number)
        matrix = np.array(column(rows, "attention", layer=layer)).reshape(len(queries), len(keys))
        draw_numbered(axes, matrix, queries, keys)
        axes.set_title(f"layer {layer}, mean of heads")
    return drawn


def _attention(
    e: Float[Tensor, "token d_e"], W_q: Float[Tensor, "d_att d_e"], W_k: Float[Tensor, "d_att d_e"], kind: str
) -> Float[Tensor, "query key"]:
    """softmax(M + QKᵀ/√d_att), M as the kind says."""
    score = (e @ W_q.T) @ (e @ W_k.T).T / sqrt(len(W_q))
    hidden = {"free": torch.zeros_like(score), "masked": torch.ones_like(score).triu(1)}
    return torch.softmax(score.masked_fill(hidden.get(kind, torch.ones_like(score).triu(0)).bool(), -torch.inf), dim=1)


def _starts(workspace: Workspace) -> list[dict[str, float]]:
    """The distance of attention from uniform when W_q and W_k have normal entries with standard deviation σ."""
    rng = torch.Generator().manual_seed(workspace.seed + 1)
    rows = []
    for spread in _SPREADS:
        for number in range(10 if workspace.quick else 200):
            e = torch.randn(32, _D_E, generator=rng, dtype=torch.float64)
            W_q, W_k = (spread * torch.randn(_D_E, _D_E, generator=rng, dtype=torch.float64) for _ in range(2))
            away = (_attention(e, W_q, W_k, "free") - 1 / 32).abs().sum(dim=1).mean() / 2
            rows.append({"spread": spread, "draw": number, "distance": float(away)})
    return rows


def _map(numbers: Numbers, kind: str) -> Float[np.ndarray, "query key"]:
    weights = column(numbers["cells"], "attention", kind=kind)
    return np.array(weights).reshape(len(_WORDS), len(_WORDS))
