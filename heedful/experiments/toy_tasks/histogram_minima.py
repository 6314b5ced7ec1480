"""Both minima of the histogram task: the same network and accuracy, with attention by token or by position."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Cell, Claim, Numbers, claim_if, column
from heedful.experiments.figure import COLOURS
from heedful.experiments.toy_tasks import histogram
from heedful.experiments.toy_tasks.histogram import Examples, Restriction, Sizes, Weights
from heedful.experiments.toy_tasks.histogram_figures import draw_curves, draw_dependence, draw_maps
from heedful.experiments.toy_tasks.histogram_training import (
    HistogramRun,
    Phase,
    begin,
    distance,
    fit_runs,
    lift,
    sights,
)
from heedful.experiments.toy_tasks.side_by_side import Adam, Parameters, Sgd, StepPlan, falling_rate, one_run
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

_Tables = dict[str, list[dict[str, Cell]]]
EXAMPLE = "DATAIAIAIA"
_N_DRAWS = 50_000
_KINDS: tuple[Restriction, ...] = ("semantic", "positional")
_NEAR = 5
"""The weights at a minimum move at most a fifth as far as untrained weights under the same steps."""
_LOST = 0.005
"""The maximum loss of accuracy at a minimum when the restriction is lifted."""
_SCORES = {
    "token_dependence": (
        "queries from one sequence, keys from another",
        "Only with such maps can a position's attention to itself be attributed to the position or to the token.",
    ),
    "of_whole_maps": (
        "as computed",
        "Query and key of the same position are the same token, so both kinds of maps have a large diagonal, "
        "which counts as independent of the tokens.",
    ),
    "off_diagonal": (
        "without its diagonal",
        "Off the diagonal a positional map is nearly uniform, and part of its small variation is the noise "
        "added when the restriction was lifted.",
    ),
}
_COLOUR = {"semantic": COLOURS[0], "positional": COLOURS[1], "none": COLOURS[7]}


@final
@dataclass(frozen=True)
class _Recipe:
    """How one form of the network is trained: with the restriction, then without."""

    weights: Weights
    n_seeds: int
    first: StepPlan
    second: StepPlan


def _recipes(quick: bool, n_train: int) -> list[_Recipe]:
    if quick:
        return [
            _Recipe(
                "tied", 1, StepPlan(Adam(1e-2, 0.9, 0.98), 3_000, 32, falling_rate(3_000)), StepPlan(Sgd(1e-2), 600, 32)
            )
        ]
    epoch = -(-n_train // 32)
    adam, sgd = Adam(1e-3, 0.9, 0.98), Sgd(1e-3)
    return [
        _Recipe("tied", 4, StepPlan(adam, 200 * epoch, 32), StepPlan(sgd, 100 * epoch, 32)),
        # As many epochs in a quarter of the steps; the gradient steps keep their total length.
        _Recipe("untied", 4, StepPlan(adam, 50 * epoch, 128), StepPlan(Sgd(4e-3), 25 * epoch, 128)),
    ]


@final
@dataclass(frozen=True)
class HistogramMinima(Experiment):
    """Two accurate minima; the map of one does not depend on the tokens, 9.4.

    Trained as the authors do, by the regularised risk: Adam while queries and keys see one half of the vectors, then
    noise of 1e-3 and SGD without the restriction. The same SGD from untrained weights is the control for how
    far weights can move.

    The quick form has the published sizes and less training: Adam for 3,000 steps at a rate that decays from 1e-2, SGD
    for 600 steps at 1e-2, and only the tied network. Its second phase is a weaker test: rate times steps is 6, not 109,
    and a positional network trained this briefly can become semantic at ten times that rate. The full form differs from
    the paper in the untied network: batches of 128 instead of 32.
    """

    name: ClassVar[str] = "histogram-minima"
    part: ClassVar[ExperimentPart] = "toy tasks"
    title: ClassVar[str] = "Histogram task: two minima, two kinds of attention"
    source: ClassVar[str] = "lecture, section 9.4; Cui, Behrens, Krzakala & Zdeborová, 2024, arXiv:2402.03902"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables runs, curves, counts, maps, answers."""
        training, test = (part.to(workspace.device) for part in histogram.examples(Sizes(), _N_DRAWS, workspace.seed))
        tables: _Tables = {"runs": [], "curves": [], "counts": [], "maps": [], "answers": []}
        recipes = _recipes(workspace.quick, len(training))
        goal, done = sum(recipe.first.n_steps + recipe.second.n_steps for recipe in recipes), 0
        for recipe in recipes:
            _minima(workspace, recipe, training, test, tables, done, goal)
            done += recipe.first.n_steps + recipe.second.n_steps
        return tables

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return [claim for weights in ("tied", "untied") for claim in _claims(numbers, weights)]

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figures maps, training, dependence."""
        return {"maps": draw_maps(numbers), "training": draw_curves(numbers), "dependence": draw_dependence(numbers)}


def _minima(
    workspace: Workspace, recipe: _Recipe, training: Examples, test: Examples, tables: _Tables, done: int, goal: int
) -> None:
    """Both phases of one form of the network; their results are added to the tables."""
    sizes, seeds = Sizes(weights=recipe.weights), range(workspace.seed, workspace.seed + recipe.n_seeds)
    kinds = [HistogramRun(kind, seed, len(training)) for kind in _KINDS for seed in seeds]
    controls = [HistogramRun("none", seed, len(training)) for seed in seeds]
    narrow = sights(sizes, [run.restriction for run in kinds], workspace.device)
    wide = sights(sizes, ["none" for _ in kinds + controls], workspace.device)

    def trained(name: str, runs: Sequence[HistogramRun], start: Parameters, seen: Tensor, n_before: int) -> Phase:
        plan = recipe.first if name == "restricted" else recipe.second

        def watch(n: int, _: int) -> None:
            workspace.progress(done + n_before + n, goal)

        key = f"{recipe.weights}-{name}"
        return Phase.of(workspace.tensors(key, lambda: fit_runs(runs, start, seen, training, plan, watch).tensors()))

    first = trained("restricted", kinds, begin(sizes, kinds, workspace.device), narrow, 0)
    lifted, untrained = lift(sizes, kinds, first.weights), begin(sizes, controls, workspace.device)
    start = {name: torch.cat([lifted[name], untrained[name]]) for name in lifted}
    second = trained("lifted", kinds + controls, start, wide, recipe.first.n_steps)
    _add_rows(tables, recipe, "restricted", kinds, first, narrow, test, [None] * len(kinds))
    moved = distance(start, second.weights).tolist()
    _add_rows(tables, recipe, "lifted", kinds + controls, second, wide, test, moved)


def _add_rows(
    tables: _Tables,
    recipe: _Recipe,
    name: str,
    runs: Sequence[HistogramRun],
    phase: Phase,
    seen: Tensor,
    test: Examples,
    moved: Sequence[float | None],
) -> None:
    """Evaluates the networks after one phase; maps and counts are those of the first seed without restriction."""
    plan = recipe.first if name == "restricted" else recipe.second
    for number, run in enumerate(runs):
        about: dict[str, Cell] = {"weights": recipe.weights, "kind": run.restriction, "seed": run.seed, "phase": name}
        network = one_run(phase.weights, number) | {"sight": seen[number]}
        tables["runs"].append({**about, "moved": moved[number], **histogram.evaluate_network(network, test)})
        tables["curves"] += _curve(about, plan, phase.curve[number])
        if name == "lifted" and run.restriction != "none" and run.seed == runs[0].seed:
            tables["counts"] += [{**about, **row} for row in histogram.by_count(network, test)]
            tables["maps"] += _looks(about, network, test)
            tables["answers"].append({**about, **_answers(network)})


def _curve(about: dict[str, Cell], plan: StepPlan, curve: Tensor) -> list[dict[str, Cell]]:
    places = np.linspace(0, plan.n_steps, len(curve) + 1)[1:]
    return [{**about, "step": int(step), "loss": value} for step, value in zip(places, curve.tolist(), strict=True)]


def _looks(about: dict[str, Cell], network: Parameters, test: Examples) -> list[dict[str, Cell]]:
    """The maps of the lecture's example and of the first two sequences of the test set."""
    tokens = torch.cat([histogram.from_letters(EXAMPLE).to(test.tokens.device), test.tokens[:2]])
    with torch.no_grad():
        maps = histogram.predict_counts(network, tokens)[1].tolist()
    return [
        {**about, "sequence": histogram.in_letters(row), "query": query, "key": key, "weight": weight}
        for row, alpha in zip(tokens.tolist(), maps, strict=True)
        for query, line in enumerate(alpha)
        for key, weight in enumerate(line)
    ]


def _answers(network: Parameters) -> dict[str, Cell]:
    tokens = histogram.from_letters(EXAMPLE)
    with torch.no_grad():
        predicted = histogram.predict_counts(network, tokens.to(network["W_e"].device))[0].argmax(dim=-1)[0].tolist()
    truth = histogram.occurrences(tokens)[0].tolist()
    return {"sequence": EXAMPLE, "answer": " ".join(map(str, predicted)), "truth": " ".join(map(str, truth))}


def _claims(numbers: Numbers, weights: str) -> list[Claim]:
    """The claims about one form of the network, tied or untied."""
    own = {name: [row for row in rows if row["weights"] == weights] for name, rows in numbers.items()}
    if not own["runs"]:
        return [
            Claim(
                f"both minima with {weights} weights",
                "two vastly different local minima exist",
                "",
                "not measured",
                "The quick form trains the lecture's tied network alone.",
            )
        ]
    lifted = {
        (kind, name): np.array(column(own["runs"], name, kind=kind, phase="lifted"))
        for kind in _COLOUR
        for name in (*_SCORES, "moved")
    }
    scores = [_scored(lifted, score, weights) for score in _SCORES]
    return [_accuracy(own, weights), *scores, _both_minima(own, lifted, weights), _counts_of_example(own, weights)]


def _share_of_count(own: Numbers, count: int) -> float:
    """The share of positions whose token has this count."""
    n = column(own["counts"], "n", kind="semantic", count=count)[0]
    return n / sum(column(own["counts"], "n", kind="semantic"))


def _accuracy(own: Numbers, weights: str) -> Claim:
    lowest = {kind: min(column(own["runs"], "test_accuracy", kind=kind)) for kind in _KINDS}
    steps = {phase: int(max(column(own["curves"], "step", phase=phase))) for phase in ("restricted", "lifted")}
    n_seeds = len({row["seed"] for row in own["runs"]})
    why = (
        f"The lowest (seeds: {n_seeds}), {steps['restricted']:,} steps with the restriction, {steps['lifted']:,} "
        f"without. Always predicting 1 is correct at {100 * _share_of_count(own, 1):.1f} % of positions."
    )
    return claim_if(
        min(lowest.values()) >= 0.99,
        f"test accuracy at both minima, {weights} weights",
        "close to 100 %",
        ", ".join(f"{kind} {100 * lowest[kind]:.2f} %" for kind in _KINDS),
        why,
        why,
    )


def _both_minima(own: Numbers, lifted: Mapping[tuple[str, str], np.ndarray], weights: str) -> Claim:
    moved = {kind: lifted[kind, "moved"].max() for kind in _KINDS}
    control = lifted["none", "moved"].min()
    lost = max(_lost(own["runs"], kind) for kind in _KINDS)
    return claim_if(
        max(moved.values()) < control / _NEAR and lost < _LOST and _blind_and_not(lifted, "token_dependence"),
        f"both are minima of the unrestricted network, {weights} weights",
        "two vastly different local minima exist",
        ", ".join(f"{kind} moved {100 * moved[kind]:.2f} %" for kind in _KINDS)
        + f", control {100 * control:.1f} %; at most {100 * max(lost, 0):.2f} % of accuracy lost",
        "After noise and gradient steps without the restriction both keep their weights, accuracy and kind "
        "of map, while the same steps move untrained weights further. This does not prove that they are "
        "minima in every direction, and under Adam positional networks can leave (histogram-samples).",
        "Noise and gradient steps without the restriction change the weights, the accuracy or the map.",
    )


def _counts_of_example(own: Numbers, weights: str) -> Claim:
    answers = {row["kind"]: row for row in own["answers"]}
    fives = {kind: 100 * column(own["counts"], "accuracy", kind=kind, count=5)[0] for kind in _KINDS}
    return claim_if(
        all(row["answer"] == row["truth"] for row in answers.values()),
        f"counts of {EXAMPLE}, {weights} weights",
        "1 5 1 5 3 5 3 5 3 5",
        "; ".join(f"{kind} {row['answer']}" for kind, row in answers.items()),
        "Both count correctly with different kinds of maps: neither the prediction nor the map determines the other.",
        f"{100 * _share_of_count(own, 5):.2f} % of the positions of uniform sequences have a token that occurs five "
        f"times. Of these the semantic network counts {fives['semantic']:.0f} % correctly, the positional one "
        f"{fives['positional']:.0f} %.",
    )


def _blind_and_not(lifted: Mapping[tuple[str, str], np.ndarray], score: str) -> bool:
    return bool(lifted["positional", score].max() < 0.05 and lifted["semantic", score].min() > 0.5)


def _scored(lifted: Mapping[tuple[str, str], np.ndarray], score: str, weights: str) -> Claim:
    what, why = _SCORES[score]
    return Claim(
        f"token dependence of the attention map, {what}, {weights} weights",
        "positional: one matrix for every sequence; semantic: weight on equal tokens",
        f"positional {lifted['positional', score].max():.5f}, semantic {lifted['semantic', score].min():.3f}",
        "agrees" if _blind_and_not(lifted, score) else "differs",
        f"Required: < 0.05 and > 0.5, without the restriction. {why}",
    )


def _lost(runs: Sequence[Mapping[str, Cell]], kind: str) -> float:
    """The largest loss of accuracy of a network of this kind when the restriction was lifted, over seeds."""
    before, after = (column(runs, "test_accuracy", kind=kind, phase=phase) for phase in ("restricted", "lifted"))
    return float(np.max(np.subtract(before, after)))
