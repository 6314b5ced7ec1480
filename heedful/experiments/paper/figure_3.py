"""Figure 3: the attention matrices of the six heads, and how different they are."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers, column
from heedful.experiments.figure import figure
from heedful.experiments.reviews import FIGURE_1
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.render.text_strip import map_axes
from heedful.statistics.correlation import pearson

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_ROUNDING = 1e-6
"""Below which two attention weights are equal; models of Hugging Face compute in single precision."""
_NAMED = 20
"""The maximum number of tokens whose names are legible beside a map."""


@final
@dataclass(frozen=True)
class Figure3(Experiment):
    """One matrix per head: the attention of every token to every token of the text."""

    name: ClassVar[str] = "figure-3"
    part: ClassVar[ExperimentPart] = "paper"
    title: ClassVar[str] = "Attention matrices of the heads"
    source: ClassVar[str] = "paper and talk, Figure 3; Eqs. (10) and (11)"
    takes_text: ClassVar[bool] = True
    takes_model: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables cells, words; of a deep model those of its first and its last layer."""
        model, text = workspace.model, workspace.text or FIGURE_1
        document = model.encode(text)
        whole = model.maps(document)
        queries, keys = map_axes(document, whole)
        read = model.readout([document])[0].cpu().numpy()[: len(queries)]
        cells, words = [], []
        for layer in sorted({0, len(whole) - 1}):
            maps = whole[layer, :, : len(queries), : len(keys)]
            for place in np.ndindex(*maps.shape):
                head, s, t = place
                cell = {"head": head + 1, "query": s, "key": t, "token": keys[t], "attention": float(maps[place])}
                cells.append({"layer": layer + 1, **cell, "from": queries[s], "read out": float(read[s])})
            kinds = ("mean", "max")
            scores = [explain(model, text, f"attention-{kind}", unit="token", layer=layer).scores for kind in kinds]
            for t, mean, biggest in zip(np.flatnonzero(document.words >= 0).tolist(), *scores, strict=True):
                row = {"word": keys[t], "key": t, "attention-mean": float(mean), "attention-max": float(biggest)}
                words.append({"layer": layer + 1, **row})
        return {"cells": cells, "words": words}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        gap, rows, words = 0.0, np.zeros((0, 0)), [""]
        for layer in _layers(numbers):
            maps, read, _, keys = _maps(numbers, layer)
            own = [row for row in numbers["words"] if row["layer"] == layer]
            places = [int(row["key"] or 0) for row in own]
            rows, words = np.einsum("q,hqk->hk", read, maps)[:, places], [keys[place] for place in places]
            for kind, seen in (("mean", rows.mean(axis=0)), ("max", rows.max(axis=0))):
                gap = max(gap, float(np.abs(seen - column(own, f"attention-{kind}")).max()))
        same = Claim(
            "α-avg and α-max are mean and maximum of the rows that are read out",
            "Eqs. (10), (11)",
            f"largest difference {gap:.1e}",
            "agrees" if gap < _ROUNDING else "differs",
            "The matrices and the explanations are computed by different code.",
            general=True,
        )
        like = [pearson(rows[a], rows[b]) for a, b in combinations(range(len(rows)), 2)]
        most = [words[int(row.argmax())] for row in rows]
        what = "heads attend to different parts of the text"
        if not like:
            only = "This model has one head in each layer, so no two can be compared."
            return [same, Claim(what, "yes", "", "not measured", only)]
        return [
            same,
            Claim(
                what,
                "yes",
                f"correlation of two heads {np.mean(like):.2f} on average, {min(like):.2f} to "
                f"{max(like):.2f}; most attended: {', '.join(most)}",
                "agrees" if len(set(most)) > 1 else "differs",
                "Each head has its own strongest word, so the explanation depends on how heads are aggregated."
                if len(set(most)) > 1
                else "On this text all heads attend most to the same word.",
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure heads; of a deep model one for the first layer and one for the last."""
        layers = _layers(numbers)
        return {
            "heads" if len(layers) == 1 else f"heads-of-layer-{layer}": _draw_heads(numbers, layer) for layer in layers
        }


def _draw_heads(numbers: Numbers, layer: int) -> "Figure":
    maps, _, queries, keys = _maps(numbers, layer)
    n_columns = min(3, len(maps))
    n_rows = -(-len(maps) // n_columns)
    drawn = figure(7.5, 2.7 * n_rows)
    for head, matrix in enumerate(maps):
        axes = drawn.add_subplot(n_rows, n_columns, head + 1)
        axes.imshow(matrix, cmap="Blues", vmin=0, vmax=float(maps.max()))
        axes.set_title(f"head {head + 1}", size=9)
        down, along = (names if len(names) <= _NAMED else [] for names in (queries, keys))
        axes.set_xticks(np.arange(len(along)), along, rotation=90, size=7)
        axes.set_yticks(np.arange(len(down)), down if head % n_columns == 0 else [""] * len(down), size=7)
    drawn.colorbar(drawn.axes[0].images[0], ax=drawn.axes, shrink=0.6, label="attention")
    if max(len(queries), len(keys)) > _NAMED:
        drawn.supxlabel(f"tokens of the text in order; names fit up to {_NAMED}", size=8)
    return drawn


def _layers(numbers: Numbers) -> list[int]:
    return list(dict.fromkeys(int(row["layer"] or 0) for row in numbers["cells"]))


def _maps(
    numbers: Numbers, layer: int
) -> tuple[Float[np.ndarray, "head query key"], Float[np.ndarray, "query"], list[str], list[str]]:
    """A layer's maps, the share of each query in the output, and the names of queries and keys."""
    cells = [row for row in numbers["cells"] if row["layer"] == layer]
    n_heads, n_queries, n_keys = (1 + max(int(row[name] or 0) for row in cells) for name in ("head", "query", "key"))
    maps = np.array(column(cells, "attention")).reshape(n_heads - 1, n_queries, n_keys)
    rows = cells[: n_queries * n_keys : n_keys]
    read = np.array(column(rows, "read out"))
    return maps, read, [str(row["from"]) for row in rows], [str(row["token"]) for row in cells[:n_keys]]
