"""The slides' attention workflow: three inputs of four numbers, with every matrix on the way to the outputs."""

from dataclasses import dataclass
from math import exp, sqrt
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_X = ((1, 0, 1, 0), (0, 2, 0, 2), (1, 1, 1, 1))
_WEIGHTS = {
    "W_k": ((0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 1, 0)),
    "W_q": ((1, 0, 1), (1, 0, 0), (0, 0, 1), (0, 1, 1)),
    "W_v": ((0, 2, 0), (0, 3, 0), (1, 0, 3), (1, 1, 0)),
}
"""Of the illustration that the slides cite. Rows are inputs and columns outputs, so that keys are x W_k."""
_PANELS = (
    "x",
    "W_k",
    "W_q",
    "W_v",
    "k",
    "q",
    "v",
    "q kᵀ",
    "attention",
    "outputs",
    "attention, scaled",
    "outputs, scaled",
)


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
        x, W_k, W_q, W_v = (np.array(rows, dtype=np.float64) for rows in (_X, *_WEIGHTS.values()))
        k, q, v = x @ W_k, x @ W_q, x @ W_v
        score = q @ k.T
        made = {"x": x, "W_k": W_k, "W_q": W_q, "W_v": W_v, "k": k, "q": q, "v": v, "q kᵀ": score}
        gaps = []
        for name, scale in (("", 1.0), (", scaled", 1 / sqrt(k.shape[1]))):
            A = np.exp(scale * score)
            A /= A.sum(axis=1, keepdims=True)
            made |= {f"attention{name}": A, f"outputs{name}": A @ v}
            tensors = [torch.from_numpy(matrix) for matrix in (q, k, v)]
            in_torch = torch.nn.functional.scaled_dot_product_attention(tensors[0], tensors[1], tensors[2], scale=scale)
            one_by_one = np.array([_output(row, k.tolist(), v.tolist(), scale) for row in q.tolist()])
            gap = max(float(np.abs(A @ v - other).max()) for other in (in_torch.numpy(), one_by_one))
            gaps.append({"scaled": bool(name), "gap": gap})
        cells: list[dict[str, Cell]] = [
            {"matrix": name, "row": row, "column": column, "value": float(matrix[row, column])}
            for name, matrix in made.items()
            for row, column in np.ndindex(*matrix.shape)
        ]
        return {"cells": cells, "gaps": gaps}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        gap = max(column(numbers["gaps"], "gap"))
        shown = {name: "; ".join(_line(row) for row in _matrix(numbers, name)) for name in _PANELS}
        first, scaled = (_matrix(numbers, f"attention{name}")[0] for name in ("", ", scaled"))
        return [
            Claim(
                "the outputs, by matrices, one number at a time, and by torch",
                "equal",
                f"largest difference {gap:.1e}",
                "agrees" if gap < 1e-12 else "differs",
                "Three computations of softmax(q kᵀ) v, with and without the division by √d_att.",
            ),
            Claim("the outputs", "", shown["outputs"], "new", "The slides print the inputs alone."),
            Claim(
                "attention of the first input, with the division by √d_att",
                "",
                f"{_line(scaled)} instead of {_line(first)}",
                "new",
                "The illustration leaves the division out; it makes attention more even.",
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure workflow."""
        drawn = figure(9.0, 6.6)
        for number, name in enumerate(_PANELS, start=1):
            axes = drawn.add_subplot(3, 4, number)
            matrix = _matrix(numbers, name)
            axes.imshow(np.zeros_like(matrix), cmap="Blues", vmin=0, vmax=1)
            for (row, place), value in np.ndenumerate(matrix):
                axes.text(
                    place,
                    row,
                    f"{value:.0f}" if value == round(value) else f"{value:.3f}",
                    ha="center",
                    va="center",
                    size=9,
                )
            axes.set_title(name, size=10, color=COLOURS[0])
            axes.set(xticks=[], yticks=range(len(matrix)), yticklabels=[str(row + 1) for row in range(len(matrix))])
        return {"workflow": drawn}


def _output(q: list[float], k: list[list[float]], v: list[list[float]], scale: float) -> list[float]:
    """One output, one number at a time."""
    weights = [exp(scale * sum(a * b for a, b in zip(q, key, strict=True))) for key in k]
    return [sum(w * value[place] for w, value in zip(weights, v, strict=True)) / sum(weights) for place in range(3)]


def _matrix(numbers: Numbers, name: str) -> Float[np.ndarray, "row column"]:
    values = column(numbers["cells"], "value", matrix=name)
    n_rows = 1 + int(max(column(numbers["cells"], "row", matrix=name)))
    return np.array(values).reshape(n_rows, -1)


def _line(row: Float[np.ndarray, "column"]) -> str:
    return ", ".join(f"{value:.3f}" for value in row)
