"""Figure 3: the attention matrices of the six heads, and how different they are."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers
from heedful.experiments.figure import figure
from heedful.experiments.reviews import FIGURE_1
from heedful.experiments.workspace import Workspace
from heedful.explainers.explain import explain
from heedful.statistics.correlation import pearson

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure


@final
@dataclass(frozen=True)
class Figure3(Experiment):
    """One matrix per head: the attention of every token to every token of the text."""

    name: ClassVar[str] = "figure-3"
    part: ClassVar[ExperimentPart] = "paper"
    title: ClassVar[str] = "Attention matrices of the heads"
    source: ClassVar[str] = "paper and talk, Figure 3; Eqs. (10) and (11)"
    takes_text: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables cells, words."""
        document = workspace.model.encode(workspace.text or FIGURE_1)
        tokens = list(document.pieces)
        maps = workspace.model.maps(document)[0, :, : len(tokens), : len(tokens)]
        cells = [
            {"head": head + 1, "query": s, "key": t, "token": tokens[t], "attention": float(maps[head, s, t])}
            for head in range(len(maps))
            for s in range(len(tokens))
            for t in range(len(tokens))
        ]
        scores = {kind: explain(workspace.model, document.text, f"attention-{kind}").scores for kind in ("mean", "max")}
        words = [
            {
                "word": tokens[t + 1],
                "attention-mean": float(scores["mean"][t]),
                "attention-max": float(scores["max"][t]),
            }
            for t in range(len(tokens) - 1)
        ]
        return {"cells": cells, "words": words}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        maps, tokens = _maps(numbers)
        rows = maps[:, 0, 1:]
        mean, biggest = (np.array([row[f"attention-{kind}"] for row in numbers["words"]]) for kind in ("mean", "max"))
        gap = float(max(np.abs(rows.mean(axis=0) - mean).max(), np.abs(rows.max(axis=0) - biggest).max()))
        like = [pearson(rows[a], rows[b]) for a, b in combinations(range(len(rows)), 2)]
        most = [tokens[1 + int(row.argmax())] for row in rows]
        return [
            Claim(
                "α-avg and α-max are mean and maximum of the first rows",
                "Eqs. (10), (11)",
                f"largest difference {gap:.1e}",
                "agrees" if gap < 1e-9 else "differs",
                "The matrices and the explanations are computed by different code.",
            ),
            Claim(
                "heads attend to different parts of the text",
                "yes",
                f"correlation of two heads {np.mean(like):.2f} on average, {min(like):.2f} to "
                f"{max(like):.2f}; most attended from [cls]: {', '.join(most)}",
                "agrees" if len(set(most)) > 1 else "differs",
                "Each head has its own strongest word, so the explanation depends on how heads are aggregated."
                if len(set(most)) > 1
                else "On this text all heads attend most to the same word.",
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure heads."""
        maps, tokens = _maps(numbers)
        n_columns = min(3, len(maps))
        drawn = figure(7.5, 2.7 * -(-len(maps) // n_columns))
        few = tokens if len(tokens) <= 20 else []
        for head, matrix in enumerate(maps):
            axes = drawn.add_subplot(-(-len(maps) // n_columns), n_columns, head + 1)
            axes.imshow(matrix, cmap="Blues", vmin=0, vmax=float(maps.max()))
            axes.set_title(f"head {head + 1}", size=9)
            axes.set_xticks(np.arange(len(few)), few, rotation=90, size=7)
            axes.set_yticks(np.arange(len(few)), few if head % n_columns == 0 else [""] * len(few), size=7)
        drawn.colorbar(drawn.axes[0].images[0], ax=drawn.axes, shrink=0.6, label="attention")
        return {"heads": drawn}


def _maps(numbers: Numbers) -> tuple[Float[np.ndarray, "head query key"], list[str]]:
    cells = numbers["cells"]
    n_heads = max(int(row["head"] or 0) for row in cells)
    n_tokens = round((len(cells) / n_heads) ** 0.5)
    maps = np.array([row["attention"] for row in cells], dtype=np.float64).reshape(n_heads, n_tokens, n_tokens)
    return maps, [str(row["token"]) for row in cells[:n_tokens]]
