"""The histogram task by the number of samples: which kind of attention does training prefer?"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, final

import torch

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Mean, Numbers, column, mean_of
from heedful.experiments.figure import COLOURS, figure, quiet
from heedful.experiments.toy_tasks import histogram
from heedful.experiments.toy_tasks.histogram import Examples, Restriction, Sizes
from heedful.experiments.toy_tasks.histogram_training import HistogramRun, Phase, begin, fit, lift, sights
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
"""Losses that differ by less are equal in single precision."""


@final
@dataclass(frozen=True)
class HistogramSamples(Experiment):
    """Which kind of solution training prefers, by the number of training sequences.

    Networks of one seed begin alike. One sees tokens and positions throughout; two are first trained with queries and
    keys that see tokens alone or positions alone. Then all are trained freely by Adam, which would carry them away from
    where they are not at rest. All runs have the same number of steps, so fewer samples are seen more often.
    The quick form has sequences of 6 tokens from an alphabet of 6, width 24 and 48 hidden units.
    """

    name: ClassVar[str] = "histogram-samples"
    part: ClassVar[ExperimentPart] = "toy tasks"
    title: ClassVar[str] = "Histogram task: which attention training prefers, by the number of samples"
    source: ClassVar[str] = "lecture, section 9.4; Cui, Behrens, Krzakala & Zdeborová, 2024, arXiv:2402.03902"
    stands_in: ClassVar[bool] = True

    def measure(self, workspace: Workspace) -> Numbers:
        recipe = _QUICK if workspace.quick else _FULL
        training, test = (
            part.to(workspace.device) for part in histogram.examples(recipe.sizes, _N_DRAWS, workspace.seed)
        )
        runs = [
            HistogramRun(start, workspace.seed + seed, n)
            for n in recipe.n_samples
            for start in _STARTS
            for seed in range(recipe.n_seeds)
        ]
        narrow = sights(recipe.sizes, [run.restriction for run in runs], workspace.device)
        wide = sights(recipe.sizes, ["none" for _ in runs], workspace.device)
        goal = recipe.first.n_steps + recipe.second.n_steps

        def watch(before: int, n: int, _: int) -> None:
            workspace.progress(before + n, goal)

        start = begin(recipe.sizes, runs, workspace.device)
        first = Phase.of(
            workspace.tensors(
                "restricted", lambda: fit(runs, start, narrow, training, recipe.first, partial(watch, 0)).tensors()
            )
        )
        second = Phase.of(
            workspace.tensors(
                "free",
                lambda: fit(
                    runs,
                    lift(recipe.sizes, runs, first.weights),
                    wide,
                    training,
                    recipe.second,
                    partial(watch, recipe.first.n_steps),
                ).tensors(),
            )
        )
        rows: list[dict[str, Cell]] = []
        for phase, weights, seen in (("restricted", first.weights, narrow), ("free", second.weights, wide)):
            for number, run in enumerate(runs):
                given = one_run(weights, number) | {"sight": seen[number]}
                about = {"n_samples": run.n_samples, "start": run.restriction, "seed": run.seed, "phase": phase}
                rows.append(
                    {
                        **about,
                        **_training_loss(given, run, training),
                        **histogram.evaluate_network(given, test.first(_N_JUDGED)),
                    }
                )
        sizes = recipe.sizes
        task: dict[str, Cell] = {"length": sizes.length, "n_tokens": sizes.n_tokens, "width": sizes.width}
        return {"runs": rows, "task": [task | {"n_hidden": sizes.n_hidden, "n_steps": goal}]}

    def claims(self, numbers: Numbers) -> list[Claim]:
        free = [row for row in numbers["runs"] if row["phase"] == "free"]
        sizes, [task] = _sizes(numbers), numbers["task"]
        found = {n: column(free, "token_dependence", n_samples=n, start="none") for n in sizes}
        kept = {
            n: [score < 0.05 for score in column(free, "token_dependence", n_samples=n, start="positional")]
            for n in sizes
        }
        preferred: dict[str, list[int]] = {"semantic": [], "positional": [], "one or the other": []}
        for n in sizes:
            kind = "semantic" if min(found[n]) > 0.5 else "positional" if max(found[n]) < 0.5 else "one or the other"
            preferred[kind].append(n)
        return [
            Claim(
                "what training prefers when it sees tokens and positions from the start",
                "",
                _listed(preferred),
                "new",
                f"By the token dependence of the maps of {len(found[sizes[0]])} seeds, above or below 0.5; it lies "
                f"between {min(map(min, found.values())):.3f} and {max(map(max, found.values())):.3f}. Sequences of "
                f"{task['length']} tokens out of {task['n_tokens']}, width {task['width']}, {task['n_hidden']} hidden "
                f"units, {task['n_steps']:,} steps.",
            ),
            Claim(
                "whether what began positional stays so once training is free",
                "two vastly different local minima exist",
                ", ".join(f"{sum(kept[n])} of {len(kept[n])} at {n:,}" for n in sizes),
                "agrees" if all(kept[sizes[-1]]) else "differs",
                "Counted are maps with token dependence below 0.05 after Adam has gone on without the restriction. "
                + (
                    "With the most samples all stay."
                    if all(kept[sizes[-1]])
                    else f"Even with the most samples {len(kept[sizes[-1]]) - sum(kept[sizes[-1]])} leave."
                ),
            ),
            Claim(
                "which restriction has the higher test accuracy",
                "",
                _lower({n: _gap(numbers, n, "test_accuracy", -1.0) for n in sizes}),
                "new",
                f"Semantic less positional, paired over {len(found[sizes[0]])} seeds: "
                + ", ".join(f"{_brief(_gap(numbers, n, 'test_accuracy', -1.0))} at {n:,}" for n in sizes)
                + ".",
            ),
            *(
                Claim(
                    f"which restriction has the lower {called}",
                    "",
                    _lower({n: _gap(numbers, n, name) for n in sizes}),
                    "new",
                    f"Positional less semantic, paired over {len(found[sizes[0]])} seeds, in nats: "
                    + ", ".join(f"{_brief(_gap(numbers, n, name))} at {n:,}" for n in sizes)
                    + ".",
                )
                for name, called in _LOSSES.items()
            ),
        ]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
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


def _training_loss(given: Parameters, run: HistogramRun, training: Examples) -> dict[str, Cell]:
    """The loss on the run's own samples, or as many of them as are evaluate_network."""
    rows = run.rows(len(training))[:_N_JUDGED].to(training.tokens.device)
    with torch.no_grad():
        return {"train_loss": float(histogram.loss(given, (training.tokens[rows], training.counts[rows])))}


def _sizes(numbers: Numbers) -> list[int]:
    return list(dict.fromkeys(int(n) for n in column(numbers["runs"], "n_samples")))


def _gap(numbers: Numbers, n: int, name: str, sign: float = 1.0) -> Mean:
    """By how much the positional restriction is worse than the semantic one, over seeds."""
    pair = (column(numbers["runs"], name, n_samples=n, start=kind, phase="restricted") for kind in _STARTS[:0:-1])
    return mean_of([sign * (place - token) for place, token in zip(*pair, strict=True)])


def _lower(gaps: dict[int, Mean]) -> str:
    """The numbers of samples where one is better and the interval says so."""
    told = {n: gap for n, gap in gaps.items() if abs(gap.value) > _ROUNDING}
    semantic = [n for n, gap in told.items() if gap.low > 0]
    positional = [n for n, gap in told.items() if gap.high < 0]
    undecided = [n for n in gaps if n not in semantic and n not in positional]
    return _listed({"semantic": semantic, "positional": positional, "undecided": undecided})


def _brief(mean: Mean) -> str:
    return f"{mean.value:.2g} [{mean.low:.2g}, {mean.high:.2g}]"


def _listed(groups: dict[str, list[int]]) -> str:
    return "; ".join(f"{name} at {', '.join(f'{n:,}' for n in sizes)}" for name, sizes in groups.items() if sizes)


def _lines(axes: "Axes", numbers: Numbers, name: str, phase: str) -> None:
    """Means over seeds with their intervals, by the number of samples."""
    sizes = _sizes(numbers)
    for start in _STARTS:
        means = [mean_of(column(numbers["runs"], name, n_samples=n, start=start, phase=phase)) for n in sizes]
        values = [mean.value for mean in means]
        axes.plot(sizes, values, _MARK[start], color=_COLOUR[start], label=_CALLED[start], fillstyle="none")
        axes.vlines(sizes, [mean.low for mean in means], [mean.high for mean in means], color=_COLOUR[start])
    quiet(axes).set(xscale="log", xlabel="training sequences")
