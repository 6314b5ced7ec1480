"""The slides' attention workflow: three inputs of four numbers, with every matrix on the way to the outputs."""

from dataclasses import dataclass
from math import exp, sqrt
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch.nn.functional import scaled_dot_product_attention

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_GIVEN = {
    "x": ((1, 0, 1, 0), (0, 2, 0, 2), (1, 1, 1, 1)),
    "W_k": ((0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 1, 0)),
    "W_q": ((1, 0, 1), (1, 0, 0), (0, 0, 1), (0, 1, 1)),
    "W_v": ((0, 2, 0), (0, 3, 0), (1, 0, 3), (1, 1, 0)),
}
"""The weights are of the illustration that the slides cite; a row for each input, so that keys are x W_k."""


@final
@dataclass(frozen=True)
class AttentionWorkflow(Experiment):
    """Self-attention of three inputs, with and without the division by √d_att.

    The slides print the inputs; the weights are those of the illustration that they cite (Karim, 2019), which leaves
    the division out.
    """

    name: ClassVar[str] = "attention-workflow"
    part: ClassVar[ExperimentPart] = "lectures"
    title: ClassVar[str] = "Attention of three inputs, every matrix"
    source: ClassVar[str] = "slides, attention workflow"

    def measure(self, workspace: Workspace) -> Numbers:  # noqa: ARG002
        """Measures the tables cells, gaps."""
        made = {name: np.array(rows, dtype=np.float64) for name, rows in _GIVEN.items()}
        k, q, v = (made["x"] @ made[f"W_{name}"] for name in "kqv")
        made |= {"k": k, "q": q, "v": v, "q kᵀ": q @ k.T}
        gaps = []
        for name, scale in (("", 1.0), (", scaled", 1 / sqrt(k.shape[1]))):
            A = np.exp(scale * made["q kᵀ"])
            A /= A.sum(axis=1, keepdims=True)
            made |= {f"attention{name}": A, f"outputs{name}": A @ v}
            q_k_v = [torch.from_numpy(matrix) for matrix in (q, k, v)]
            in_torch = scaled_dot_product_attention(q_k_v[0], q_k_v[1], q_k_v[2], scale=scale).numpy()
            one_by_one = [_output(row, k.tolist(), v.tolist(), scale) for row in q.tolist()]
            gap = max(float(np.abs(A @ v - other).max()) for other in (in_torch, one_by_one))
            gaps.append({"scaled": bool(name), "gap": gap})
        cells: list[dict[str, Cell]] = [
            {"matrix": name, "row": row, "column": column, "value": float(value)}
            for name, matrix in made.items()
            for (row, column), value in np.ndenumerate(matrix)
        ]
        return {"cells": cells, "gaps": gaps}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        gap, matrices = max(column(numbers["gaps"], "gap")), _matrices(numbers)
        first, scaled = (_line(matrices[name][0]) for name in ("attention", "attention, scaled"))
        checked = "Three computations of softmax(q kᵀ) v, with and without the division by √d_att."
        return [
            Claim(
                "the outputs, by matrices, one number at a time, and by torch",
                "equal",
                f"largest difference {gap:.1e}",
                "agrees" if gap < 1e-12 else "differs",
                checked,
            ),
            Claim(
                "the outputs",
                "",
                "; ".join(map(_line, matrices["outputs"])),
                "new",
                "The slides print the inputs alone.",
            ),
            Claim(
                "attention of the first input, with the division by √d_att",
                "",
                f"{scaled} instead of {first}",
                "new",
                "The illustration leaves the division out; it makes attention more even.",
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure workflow."""
        drawn = figure(9.0, 6.6)
        for number, (name, matrix) in enumerate(_matrices(numbers).items(), start=1):
            axes = drawn.add_subplot(3, 4, number)
            axes.imshow(np.zeros_like(matrix), cmap="Blues", vmin=0, vmax=1)
            for (row, place), value in np.ndenumerate(matrix):
                shown = f"{value:.0f}" if value == round(value) else f"{value:.3f}"
                axes.text(place, row, shown, ha="center", va="center", size=9)
            axes.set_title(name, size=10, color=COLOURS[0])
            axes.set(xticks=[], yticks=range(len(matrix)), yticklabels=[str(row + 1) for row in range(len(matrix))])
        return {"workflow": drawn}


def _output(q: list[float], k: list[list[float]], v: list[list[float]], scale: float) -> list[float]:
    """One output, one number at a time."""
    weights = [exp(scale * sum(a * b for a, b in zip(q, key, strict=True))) for key in k]
    return [sum(w * value[place] for w, value in zip(weights, v, strict=True)) / sum(weights) for place in range(3)]


def _matrices(numbers: Numbers) -> dict[str, Float[np.ndarray, "row column"]]:
    cells = numbers["cells"]
    n_rows = {str(row["matrix"]): 1 + int(row["row"] or 0) for row in cells}
    return {name: np.array(column(cells, "value", matrix=name)).reshape(n, -1) for name, n in n_rows.items()}


def _line(row: Float[np.ndarray, "column"]) -> str:
    return ", ".join(f"{value:.3f}" for value in row)
