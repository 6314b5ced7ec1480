"""The GELU of the lecture, its curve, and the constant of its normal distribution."""

from dataclasses import dataclass
from math import erf, exp, pi, sqrt
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_FAR, _STEP = 8.0, 1 / 64


@final
@dataclass(frozen=True)
class Gelu(Experiment):
    """x Φ(x) compared with ReLU, and Φ as printed compared with the correct Φ."""

    name: ClassVar[str] = "gelu"
    part: ClassVar[ExperimentPart] = "lectures"
    title: ClassVar[str] = "Gaussian error linear units"
    source: ClassVar[str] = "lecture, Section 9.2"

    def measure(self, workspace: Workspace) -> Numbers:  # noqa: ARG002
        """Measures the table curve."""
        x = np.arange(-_FAR, _FAR + _STEP, _STEP)
        density = np.exp(-(x**2) / 2)
        # Simpson's rule from −8, below which the normal law has 1e-15 of its mass.
        middle = np.array([exp(-((left + _STEP / 2) ** 2) / 2) for left in x[:-1]])
        integral = np.append(0.0, np.cumsum((density[:-1] + 4 * middle + density[1:]) * _STEP / 6))
        in_torch = torch.nn.functional.gelu(torch.from_numpy(x.copy())).numpy()
        rows = [
            {
                "x": float(at),
                "printed": float(area / (2 * pi)),
                "normal": float(area / sqrt(2 * pi)),
                "by erf": (1 + erf(float(at) / sqrt(2))) / 2,
                "gelu": float(at * area / sqrt(2 * pi)),
                "torch": float(reference),
                "relu": max(float(at), 0.0),
            }
            for at, area, reference in zip(x, integral, in_torch, strict=True)
        ]
        return {"curve": rows}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        printed, normal, reference = (
            np.array(column(numbers["curve"], name)) for name in ("printed", "normal", "by erf")
        )
        gelu, in_torch = (np.array(column(numbers["curve"], name)) for name in ("gelu", "torch"))
        gap, torch_gap = float(np.abs(normal - reference).max()), float(np.abs(gelu - in_torch).max())
        return [
            Claim(
                "Φ(x) for large x",
                "1/(2π) ∫ e^(−t²/2) dt",
                f"{printed[-1]:.4f} as printed, {normal[-1]:.4f} with 1/√(2π)",
                "corrected" if abs(printed[-1] - 1) > 0.1 and gap < 1e-9 else "differs",
                "A distribution function must tend to 1: the printed constant lacks a square root.",
            ),
            Claim(
                "GELU(x) = x Φ(x)",
                "x Φ(x)",
                f"largest difference to torch {torch_gap:.1e}",
                "agrees" if torch_gap < 1e-9 else "differs",
                "Computed by Simpson's rule on [−8, 8].",
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure gelu."""
        drawn = figure(7.0, 3.0)
        near = [row for row in numbers["curve"] if abs(float(row["x"] or 0.0)) <= 3.5]
        x = column(near, "x")
        left, right = (quiet(drawn.add_subplot(1, 2, number)) for number in (1, 2))
        left.plot(x, column(near, "gelu"), color=COLOURS[0], label="GELU")
        left.plot(x, column(near, "relu"), "--", color=COLOURS[1], label="ReLU")
        right.plot(x, column(near, "normal"), color=COLOURS[0], label="with 1/√(2π)")
        right.plot(x, column(near, "printed"), "--", color=COLOURS[1], label="as printed, 1/(2π)")
        left.set(xlabel="x", title="activation")
        right.set(xlabel="x", title="Φ(x)")
        for axes in (left, right):
            axes.legend(frameon=False)
        return {"gelu": drawn}
