"""What the experiment found: curves, their distance from the random control, a table and a figure.

    python -m studies.roar.report runs/roar

shows and draws again what `runs/roar/roar.json` holds, wherever it was made.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float
from rich.console import Console
from rich.table import Table

from heedful.run_folder import write_atomically
from heedful.statistics.intervals import seed_intervals
from studies.roar.ledger import NOTHING, RoarRun
from studies.roar.plan import CONTROL, RoarPlan
from studies.roar.retraining import Accuracies


@final
class Estimate(NamedTuple):
    """A mean over seeds and the longer arm of its 95 % confidence interval; None without one, as from one seed."""

    mean: float
    error: float | None

    def __str__(self) -> str:
        return f"{100 * self.mean:.2f}" + ("" if self.error is None else f" ± {100 * self.error:.2f}")


@final
@dataclass(frozen=True)
class Curve:
    """Test accuracy against the share of replaced words.

    `from_random` is how far the curve lies above (+) or below (−) that of the random control, on average over the
    shares above 0; None for the control itself. The interval is over training seeds, paired, and not corrected for the
    number of methods.
    """

    mode: str
    method: str
    percents: tuple[int, ...]
    accuracy: tuple[Estimate, ...]
    from_random: Estimate | None


def curves(plan: RoarPlan, results: Mapping[RoarRun, Accuracies]) -> list[Curve]:
    percents = (0, *sorted(set(plan.percents) - {0}))

    def table(method: str, mode: str) -> Float[np.ndarray, "seed share"]:
        def accuracy(seed: int, percent: int) -> float:
            run = RoarRun(method, mode, percent, seed) if percent else RoarRun(NOTHING, NOTHING, 0, seed)
            return results[run].test_accuracy

        return np.array([[accuracy(seed, percent) for percent in percents] for seed in range(plan.n_seeds)])

    found = []
    for mode in dict.fromkeys(plan.modes):
        control = table(CONTROL, mode)
        for method in dict.fromkeys(plan.methods):
            own = table(method, mode)
            away = None if method == CONTROL or len(percents) == 1 else (own - control)[:, 1:].mean(axis=1)
            distance = None if away is None else estimate(away, -1.0)
            found.append(Curve(mode, method, percents, tuple(map(estimate, own.T)), distance))
    return found


def estimate(draws: Float[np.ndarray, "seed"], least: float = 0.0) -> Estimate:
    """The mean over seeds of shares, or with −1 as the least value of differences of shares."""
    mean = float(draws.mean())
    low, high = (float(end[0]) for end in seed_intervals(draws[None], (least, 1.0)))
    return Estimate(mean, None if isnan(low) else max(mean - low, high - mean))


def as_table(found: Sequence[Curve], mode: str) -> Table:
    """The curves of one mode, accuracies in per cent."""
    meaning = {"remove": "strongest words removed: lower is better", "keep": "weakest words removed: higher is better"}
    table = Table(title=f"{mode} and retrain, test accuracy in % ({meaning[mode]})")
    own = [curve for curve in found if curve.mode == mode]
    table.add_column("method", no_wrap=True)
    for name in (*(f"{percent} %" for percent in own[0].percents), "from random"):
        table.add_column(name, justify="right", no_wrap=True)
    for curve in own:
        away = "" if curve.from_random is None else f"{'+' * (curve.from_random.mean > 0)}{curve.from_random}"
        table.add_row(curve.method, *map(str, curve.accuracy), away)
    return table


def show(found: Sequence[Curve]) -> None:
    """The tables on standard output."""
    console = Console(width=None if sys.stdout.isatty() else 200)
    for mode in dict.fromkeys(curve.mode for curve in found):
        console.print(as_table(found, mode))


def draw(found: Sequence[Curve], folder: Path) -> bool:
    """Writes roar.svg and roar.png, a panel a mode, the control in black; False where matplotlib is not installed."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        return False
    modes = list(dict.fromkeys(curve.mode for curve in found))
    # A fixed salt and no date: the same results give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "heedful"}):
        figure = Figure(figsize=(5.2 * len(modes), 3.8))
        panels = figure.subplots(1, len(modes), sharey=True, squeeze=False)[0]
        for mode, axes in zip(modes, panels, strict=True):
            own = [curve for curve in found if curve.mode == mode]
            for number, curve in enumerate(own):
                control, errors = curve.method == CONTROL, [point.error for point in curve.accuracy]
                axes.errorbar(
                    curve.percents,
                    [100 * point.mean for point in curve.accuracy],
                    None if None in errors else [100 * (error or 0.0) for error in errors],
                    label=curve.method,
                    color="black" if control else f"C{number}",
                    linestyle="--" if control else "-",
                    marker="os^Dv<>px*"[number % 10],
                    markersize=4,
                    capsize=2,
                )
            axes.set(title=f"{mode} and retrain", xlabel="words replaced, %", xticks=own[0].percents)
            axes.grid(alpha=0.3)
        panels[0].set_ylabel("test accuracy, %")
        panels[0].legend(fontsize=8)
        figure.tight_layout()
        for kind, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 150})):
            write_atomically(folder / f"roar.{kind}", partial(figure.savefig, format=kind, **options))
    return True


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = Path(sys.argv[1])
    found = []
    for row in json.loads((folder / "roar.json").read_text(encoding="utf-8"))["curves"]:
        points = tuple(Estimate(*point) for point in row["accuracy"])
        distance = None if row["from_random"] is None else Estimate(*row["from_random"])
        found.append(Curve(row["mode"], row["method"], tuple(row["percents"]), points, distance))
    show(found)
    draw(found, folder)


if __name__ == "__main__":
    main()
