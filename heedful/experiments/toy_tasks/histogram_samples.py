"""The histogram task by the number of training samples: which kind of attention does training prefer?"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import SHARES, Cell, Claim, Mean, Numbers, claim_if, column, mean_over_seeds
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.toy_tasks import histogram
from heedful.experiments.toy_tasks.histogram import Examples, Restriction, Sizes
from heedful.experiments.toy_tasks.histogram_training import HistogramRun, Phase, begin, fit_runs, lift, sights
from heedful.experiments.toy_tasks.side_by_side import Adam, Parameters, StepPlan, falling_rate, one_run
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Axes, Figure

_N_DRAWS = 50_000
_N_JUDGED = 3_000
_STARTS: tuple[Restriction, ...] = ("none", "semantic", "positional")
_CALLED = {"none": "free from the start", "semantic": "semantic first", "positional": "positional first"}
_COLOUR = {"none": COLOURS[6], "semantic": COLOURS[0], "positional": COLOURS[1]}
_LOSSES = {"train_loss": "training loss", "test_loss": "test loss"}
_MARK = {"none": "s-", "semantic": "o-", "positional": "^-"}


@final
@dataclass(frozen=True)
class _Recipe:
    sizes: Sizes
    n_samples: tuple[int, ...]
    n_seeds: int
    first: StepPlan
    second: StepPlan


_QUICK = _Recipe(
    Sizes(length=6, n_tokens=6, width=24, n_hidden=48),
    (30, 300, 3_000),
    2,
    StepPlan(Adam(1e-2, 0.9, 0.98), 800, 32, falling_rate(800)),
    StepPlan(Adam(1e-3, 0.9, 0.98), 400, 32),
)
_FULL = _Recipe(
    Sizes(),
    (30, 100, 300, 1_000, 3_000, 10_000, 30_000),
    8,
    StepPlan(Adam(3e-3, 0.9, 0.98), 20_000, 32, falling_rate(20_000)),
    StepPlan(Adam(1e-3, 0.9, 0.98), 10_000, 32),
)


_ROUNDING = 1e-6
"""Smaller differences of losses are below single precision."""


@final
@dataclass(frozen=True)
class HistogramSamples(Experiment):
    """Which kind of solution training prefers, by the number of training sequences.

    Networks of one seed have the same initial weights. One uses tokens and positions throughout; two are first trained
    with queries and keys restricted to tokens or to positions. Then all are trained without restriction by Adam, which
    would move them away if they were not at a minimum. All runs have the same number of steps, so fewer samples are
    repeated more often. The quick form has sequences of 6 tokens from an alphabet of 6, width 24 and 48 hidden units.
    """

    name: ClassVar[str] = "histogram-samples"
    part: ClassVar[ExperimentPart] = "toy tasks"
    title: ClassVar[str] = "Histogram task: which attention training prefers, by the number of samples"
    source: ClassVar[str] = "lecture, section 9.4; Cui, Behrens, Krzakala & Zdeborová, 2024, arXiv:2402.03902"
    smaller_when_quick: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables runs, task."""
        recipe = _QUICK if workspace.quick else _FULL
        sizes = recipe.sizes
        parts = histogram.examples(sizes, _N_DRAWS, workspace.seed)
        training, test = (part.to(workspace.device) for part in parts)
        runs = [
            HistogramRun(start, workspace.seed + seed, n)
            for n in recipe.n_samples
            for start in _STARTS
            for seed in range(recipe.n_seeds)
        ]
        rows: list[dict[str, Cell]] = []
        for phase, (weights, seen) in _phases(workspace, recipe, runs, training).items():
            for number, run in enumerate(runs):
                network = one_run(weights, number) | {"sight": seen[number]}
                row = {"n_samples": run.n_samples, "start": run.restriction, "seed": run.seed, "phase": phase}
                row |= _training_loss(network, run, training)
                rows.append({**row, **histogram.evaluate_network(network, test.first(_N_JUDGED))})
        task: dict[str, Cell] = {"length": sizes.length, "n_tokens": sizes.n_tokens, "width": sizes.width}
        n_steps = recipe.first.n_steps + recipe.second.n_steps
        return {"runs": rows, "task": [task | {"n_hidden": sizes.n_hidden, "n_steps": n_steps}]}

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        restricted = [("higher test accuracy", "test_accuracy", -1.0, "Semantic less positional", "")]
        restricted += [
            (f"lower {called}", name, 1.0, "Positional less semantic", ", in nats") for name, called in _LOSSES.items()
        ]
        return [_preferred(numbers), _stays_positional(numbers), *(_better(numbers, *row) for row in restricted)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure preference."""
        drawn = figure(7.5, 6.0)
        grid = drawn.subplots(2, 2)
        _lines(grid[0, 0], numbers, "token_dependence", "free")
        grid[0, 0].set(title="after free training", ylabel="token dependence of the map", ylim=(-0.05, 1.1))
        _lines(grid[0, 1], numbers, "test_accuracy", "free")
        grid[0, 1].set(title="after free training", ylabel="test accuracy (share of positions)")
        for axes, (name, called) in zip(grid[1], _LOSSES.items(), strict=True):
            _lines(axes, numbers, name, "restricted")
            axes.set(title="before the restriction is lifted", ylabel=f"{called} (nats)", yscale="log")
        grid[0, 0].legend(frameon=False, loc="center right")
        return {"preference": drawn}


def _phases(
    workspace: Workspace, recipe: _Recipe, runs: Sequence[HistogramRun], training: Examples
) -> dict[str, tuple[Parameters, Float[Tensor, "run d_e"]]]:
    """The weights after each phase of training, and the input of queries and keys in it."""
    narrow = sights(recipe.sizes, [run.restriction for run in runs], workspace.device)
    wide = sights(recipe.sizes, ["none" for _ in runs], workspace.device)
    goal = recipe.first.n_steps + recipe.second.n_steps

    def trained(key: str, start: Parameters, seen: Tensor, plan: StepPlan, n_before: int) -> Parameters:
        def watch(n: int, _: int) -> None:
            workspace.progress(n_before + n, goal)

        return Phase.of(
            workspace.tensors(key, lambda: fit_runs(runs, start, seen, training, plan, watch).tensors())
        ).weights

    first = trained("restricted", begin(recipe.sizes, runs, workspace.device), narrow, recipe.first, 0)
    second = trained("free", lift(recipe.sizes, runs, first), wide, recipe.second, recipe.first.n_steps)
    return {"restricted": (first, narrow), "free": (second, wide)}


def _dependence(numbers: Numbers, start: str) -> dict[int, list[float]]:
    """The token dependence after free training, seed by seed, by the number of samples."""
    free = [row for row in numbers["runs"] if row["phase"] == "free"]
    return {n: column(free, "token_dependence", n_samples=n, start=start) for n in _sizes(numbers)}


def _preferred(numbers: Numbers) -> Claim:
    scores, [task] = _dependence(numbers, "none"), numbers["task"]
    preferred: dict[str, list[int]] = {"semantic": [], "positional": [], "one or the other": []}
    for n, own in scores.items():
        kind = "semantic" if min(own) > 0.5 else "positional" if max(own) < 0.5 else "one or the other"
        preferred[kind].append(n)
    return Claim(
        "what training prefers with tokens and positions from the start",
        "",
        _listed(preferred),
        "new",
        f"By the token dependence of the maps of {_n_seeds(numbers)} seeds, above or below 0.5; it lies between "
        f"{min(map(min, scores.values())):.3f} and {max(map(max, scores.values())):.3f}. Sequences of "
        f"{task['length']} tokens out of {task['n_tokens']}, width {task['width']}, {task['n_hidden']} hidden units, "
        f"{task['n_steps']:,} steps.",
    )


def _stays_positional(numbers: Numbers) -> Claim:
    kept = {n: [score < 0.05 for score in own] for n, own in _dependence(numbers, "positional").items()}
    most = kept[_sizes(numbers)[-1]]
    counted = "Maps with token dependence below 0.05 after further training by Adam without the restriction. "
    return claim_if(
        all(most),
        "whether positional networks stay positional when the restriction is lifted",
        "two vastly different local minima exist",
        ", ".join(f"{sum(own)} of {len(own)} at {n:,}" for n, own in kept.items()),
        counted + "With the most samples all stay positional.",
        counted + f"Even with the most samples {len(most) - sum(most)} do not stay positional.",
    )


def _better(numbers: Numbers, what: str, name: str, sign: float, order: str, unit: str) -> Claim:
    gaps = {n: _gap(numbers, n, name, sign) for n in _sizes(numbers)}
    listed = ", ".join(f"{_brief(gap)} at {n:,}" for n, gap in gaps.items())
    why = f"{order}, paired over {_n_seeds(numbers)} seeds{unit}: {listed}."
    return Claim(f"which restriction has the {what}", "", _lower(gaps), "new", why)


def _n_seeds(numbers: Numbers) -> int:
    return len(_dependence(numbers, "none")[_sizes(numbers)[0]])


def _training_loss(parameters: Parameters, run: HistogramRun, training: Examples) -> dict[str, Cell]:
    """The loss on the run's own samples, or as many of them as are evaluated."""
    rows = run.rows(len(training))[:_N_JUDGED].to(training.tokens.device)
    with torch.no_grad():
        return {"train_loss": float(histogram.loss(parameters, (training.tokens[rows], training.counts[rows])))}


def _sizes(numbers: Numbers) -> list[int]:
    return list(dict.fromkeys(int(n) for n in column(numbers["runs"], "n_samples")))


def _gap(numbers: Numbers, n: int, name: str, sign: float = 1.0) -> Mean:
    """The difference between the positional and the semantic restriction, over seeds."""
    pair = (column(numbers["runs"], name, n_samples=n, start=kind, phase="restricted") for kind in _STARTS[:0:-1])
    bounds = (-1.0, 1.0) if name == "test_accuracy" else (-inf, inf)
    return mean_over_seeds([sign * (place - token) for place, token in zip(*pair, strict=True)], bounds)


def _lower(gaps: dict[int, Mean]) -> str:
    """The numbers of samples at which one is significantly better."""
    decided = {n: gap for n, gap in gaps.items() if abs(gap.value) > _ROUNDING}
    semantic = [n for n, gap in decided.items() if gap.low > 0]
    positional = [n for n, gap in decided.items() if gap.high < 0]
    undecided = [n for n in gaps if n not in semantic and n not in positional]
    return _listed({"semantic": semantic, "positional": positional, "undecided": undecided})


def _brief(mean: Mean) -> str:
    return f"{mean.value:.2g}" + (f" [{mean.low:.2g}, {mean.high:.2g}]" if mean.has_interval else "")


def _listed(groups: dict[str, list[int]]) -> str:
    return "; ".join(f"{name} at {', '.join(f'{n:,}' for n in sizes)}" for name, sizes in groups.items() if sizes)


def _lines(axes: "Axes", numbers: Numbers, name: str, phase: str) -> None:
    """Means over seeds with their intervals, by the number of samples."""
    sizes = _sizes(numbers)
    for start in _STARTS:
        bounds = SHARES if name == "test_accuracy" else (0.0, inf)
        means = [
            mean_over_seeds(column(numbers["runs"], name, n_samples=n, start=start, phase=phase), bounds) for n in sizes
        ]
        values = [mean.value for mean in means]
        axes.plot(sizes, values, _MARK[start], color=_COLOUR[start], label=_CALLED[start], fillstyle="none")
        axes.vlines(sizes, [mean.low for mean in means], [mean.high for mean in means], color=_COLOUR[start])
    quiet(axes).set(xscale="log", xlabel="training sequences")
