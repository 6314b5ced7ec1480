"""Networks of the histogram task trained side by side: under a restriction, and after it is lifted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.experiments.toy_tasks import histogram
from heedful.experiments.toy_tasks.histogram import Examples, Restriction, Sizes
from heedful.experiments.toy_tasks.side_by_side import Parameters, StepPlan, one_run, stack_runs, train_side_by_side

NOISE = 1e-3
_N_POINTS = 50


@final
@dataclass(frozen=True)
class HistogramRun:
    """One network: the restriction of its queries and keys, its seed, and the number of training sequences.

    Runs of one seed have the same initial weights, and smaller training sets are subsets of larger ones.
    """

    restriction: Restriction
    seed: int
    n_samples: int

    def rows(self, n_there: int) -> Int[Tensor, "_"]:
        """Which of all sequences the run is trained on."""
        rng = torch.Generator().manual_seed(self.seed)
        return torch.randperm(n_there, generator=rng)[: self.n_samples]


@final
@dataclass(frozen=True)
class Phase:
    """The result of a phase of training: stacked weights, and mean risks over up to 50 equal intervals."""

    weights: Parameters
    curve: Float[Tensor, "run point"]

    def tensors(self) -> dict[str, Tensor]:
        """Weights and curve, as one file holds them."""
        return self.weights | {"curve": self.curve}

    @staticmethod
    def of(kept: Mapping[str, Tensor]) -> "Phase":
        """The phase from the tensors of its file."""
        return Phase({name: tensor for name, tensor in kept.items() if name != "curve"}, kept["curve"])


def begin(sizes: Sizes, runs: Sequence[HistogramRun], device: str) -> Parameters:
    """The weights before any training."""
    drawn = stack_runs([histogram.initial(sizes, run.seed) for run in runs])
    return {name: tensor.to(device) for name, tensor in drawn.items()}


def lift(sizes: Sizes, runs: Sequence[HistogramRun], trained: Parameters) -> Parameters:
    """The start of the second phase: the trained weights without restriction and with a little noise."""
    return stack_runs(
        [
            histogram.lifted(sizes, one_run(trained, number), run.restriction, NOISE, run.seed)
            for number, run in enumerate(runs)
        ]
    )


def sights(sizes: Sizes, restrictions: Sequence[Restriction], device: str) -> Float[Tensor, "run d_e"]:
    """The input of queries and keys of each run."""
    return torch.stack([histogram.sight(sizes, restriction) for restriction in restrictions]).to(device)


def fit_runs(
    runs: Sequence[HistogramRun],
    start: Parameters,
    seen: Float[Tensor, "run d_e"],
    training: Examples,
    plan: StepPlan,
    watch: Callable[[int, int], None],
) -> Phase:
    """Trains all runs by one plan, each on its own samples."""
    trained = train_side_by_side(
        histogram.regularised_risk,
        start,
        (training.tokens, training.counts),
        [run.rows(len(training)) for run in runs],
        [run.seed for run in runs],
        plan,
        {"sight": seen},
        watch,
    )
    n_points = min(_N_POINTS, plan.n_steps)
    curve = torch.stack([part.mean(dim=1) for part in trained.losses.tensor_split(n_points, dim=1)], dim=1)
    return Phase(trained.parameters, curve)


def distance(first: Parameters, second: Parameters) -> Float[Tensor, "run"]:
    """The distance of each run's weights from their previous values, relative to their norm."""
    moved = sum((second[name] - first[name]).square().flatten(1).sum(dim=1) for name in first)
    length = sum(first[name].square().flatten(1).sum(dim=1) for name in first)
    assert isinstance(moved, Tensor)
    return (moved / length).sqrt()
