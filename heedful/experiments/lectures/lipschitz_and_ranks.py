"""The lecture's sketches of robustness and monotonicity: Lipschitz functions, and Spearman's rank correlation."""

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from jaxtyping import Float

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, column
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.workspace import Workspace
from heedful.statistics.correlation import pearson, spearman

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_NICE, _STEEP = "sin 2x", "√|x|"
_LIPSCHITZ = 2.0
"""The smallest L for sin 2x: the largest size of its derivative."""
_DISTANCES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
_MONOTONE, _NOISY, _NEITHER = "eˣ", "eˣ with noise", "x²"
_N_POINTS = 60


@final
@dataclass(frozen=True)
class LipschitzAndRanks(Experiment):
    """A function that is Lipschitz at 0, one that is not; ranks that agree or do not."""

    name: ClassVar[str] = "lipschitz-and-ranks"
    part: ClassVar[ExperimentPart] = "lectures"
    title: ClassVar[str] = "Lipschitz functions and rank correlation"
    source: ClassVar[str] = "lecture, Chapter 10: robustness and monotonicity"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables curves, quotients, pairs, correlations."""
        x = np.linspace(-1.5, 1.5, 301)
        curves = [
            {"function": name, "x": float(at), "y": float(y)}
            for name in (_NICE, _STEEP)
            for at, y in zip(x, _value(name, x), strict=True)
        ]
        quotients = []
        for name, distance in product((_NICE, _STEEP), _DISTANCES):
            near = distance * np.linspace(0.01, 1, 100)
            largest = float((np.abs(_value(name, near)) / near).max())
            quotients.append({"function": name, "δ": distance, "largest quotient": largest})
        rng = np.random.default_rng(workspace.seed)
        u = np.linspace(-2, 2, _N_POINTS)
        seen = {_MONOTONE: np.exp(u), _NOISY: np.exp(u) + rng.normal(0, 0.5, _N_POINTS), _NEITHER: u**2}
        pairs: list[dict[str, Cell]] = [
            {"pair": name, "x": float(a), "y": float(b)} for name, y in seen.items() for a, b in zip(u, y, strict=True)
        ]
        correlations = [
            {
                "pair": name,
                "pearson": pearson(u, y),
                "spearman": spearman(u, y),
                "of ranks": pearson(*map(_ranks, (u, y))),
            }
            for name, y in seen.items()
        ]
        return {"curves": curves, "quotients": quotients, "pairs": pairs, "correlations": correlations}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        nice, steep = (column(numbers["quotients"], "largest quotient", function=name) for name in (_NICE, _STEEP))
        spearmans, pearsons = (np.array(column(numbers["correlations"], n)) for n in ("spearman", "of ranks"))
        gap = float(np.abs(spearmans - pearsons).max())
        (row,) = (row for row in numbers["correlations"] if row["pair"] == _MONOTONE)
        linear, ranks = float(row["pearson"] or 0), float(row["spearman"] or 0)
        return [
            Claim(
                f"{_NICE} is Lipschitz at 0, {_STEEP} is not",
                "|F(x) − F(0)| ≤ L |x| near 0",
                f"largest quotient for δ = {_DISTANCES[-1]:g}: {nice[-1]:.3f} and {steep[-1]:.3g}",
                "agrees" if max(nice) <= _LIPSCHITZ < steep[-1] and steep == sorted(steep) else "differs",
                "The first stays below L = 2 for every δ; the second grows without limit as δ → 0, so no L suffices.",
            ),
            Claim(
                "Spearman's correlation is Pearson's of the ranks",
                "equal",
                f"largest difference {gap:.1e}",
                "agrees" if gap < 1e-12 else "differs",
                "Ties share their mean rank.",
            ),
            Claim(
                f"x and {_MONOTONE}: monotone, but not linear",
                "1 for every monotone relation",
                f"Spearman {ranks:.3f}, Pearson {linear:.3f}",
                "agrees" if abs(ranks - 1) < 1e-12 and linear < 0.99 else "differs",
                "Ranks do not see the curve, which Pearson's correlation does.",
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures lipschitz, ranks."""
        cones, ranks = figure(8.0, 3.4), figure(9.0, 3.2)
        for number, name in enumerate((_NICE, _STEEP), start=1):
            axes = quiet(cones.add_subplot(1, 2, number))
            x = np.array(column(numbers["curves"], "x", function=name))
            axes.fill_between(x, -_LIPSCHITZ * abs(x), _LIPSCHITZ * abs(x), color=COLOURS[5], alpha=0.25)
            axes.plot(x, column(numbers["curves"], "y", function=name), color=COLOURS[0])
            largest = max(column(numbers["quotients"], "largest quotient", function=name))
            kept = "stays in" if largest <= _LIPSCHITZ else "leaves"
            axes.set(title=f"F(x) = {name} {kept} the cone |y| ≤ 2 |x|", xlabel="x", ylim=(-1.6, 1.6))
        for number, row in enumerate(numbers["correlations"], start=1):
            axes = quiet(ranks.add_subplot(1, 3, number))
            x, y = (column(numbers["pairs"], name, pair=row["pair"]) for name in ("x", "y"))
            axes.plot(x, y, ".", color=COLOURS[0])
            both = (f"{name} {float(row[name.lower()] or 0):+.2f}" for name in ("Spearman", "Pearson"))
            axes.set_title(f"{row['pair']}\n{', '.join(both)}", size=9)
            axes.set_xlabel("x")
        return {"lipschitz": cones, "ranks": ranks}


def _value(name: str, x: Float[np.ndarray, "point"]) -> Float[np.ndarray, "point"]:
    return np.sin(2 * x) if name == _NICE else np.sqrt(np.abs(x))


def _ranks(values: Float[np.ndarray, "point"]) -> Float[np.ndarray, "point"]:
    """Ranks from 1, by comparing every pair; ties share the mean of their ranks."""
    below, equal = values[:, None] > values[None], values[:, None] == values[None]
    return below.sum(axis=1) + (equal.sum(axis=1) + 1) / 2
