"""Trains many small models of one architecture side by side, so that each GPU kernel serves all of them.

Parameters are stacked along a leading axis of runs. A step needs no work on the host: batch indices, learning rates and
losses are in tensors that are filled and read every thousand steps. So on CUDA the step is captured once as a graph and
replayed; on the CPU the same step is called.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import grad_and_value, vmap

from heedful.errors import BadInput
from heedful.models.training_loop import cosine_decay

Parameters = dict[str, Tensor]
Loss = Callable[[Parameters, tuple[Tensor, ...]], Tensor]
"""The loss of one run on one batch: parameters without the axis of runs, then the batch's rows of every data tensor."""

_CHUNK = 1_000
_N_WARM = 3


@final
@dataclass(frozen=True)
class Adam:
    """Kingma & Ba, 2015, as `torch.optim.Adam` computes it."""

    rate: float
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8

    def rates(self, step: int, factor: float) -> tuple[float, float]:
        """The rate over the bias of the first moment, and one over the root of the second's; steps count from 0."""
        bias_1, bias_2 = 1 - self.beta_1 ** (step + 1), 1 - self.beta_2 ** (step + 1)
        return factor * self.rate / bias_1, 1 / sqrt(bias_2)

    def update(self, flat: Tensor, gradient: Tensor, moments: Tensor, rates: tuple[Tensor, Tensor]) -> None:
        """One step of the weights, in place; `moments` are updated too."""
        first, second = moments[0], moments[1]
        first.lerp_(gradient, 1 - self.beta_1)
        second.mul_(self.beta_2).addcmul_(gradient, gradient, value=1 - self.beta_2)
        flat.sub_(rates[0] * first / (second.sqrt() * rates[1] + self.epsilon))


@final
@dataclass(frozen=True)
class Sgd:
    """Gradient steps without momentum."""

    rate: float

    def rates(self, step: int, factor: float) -> tuple[float, float]:  # noqa: ARG002
        """The rate; the second number is not used."""
        return factor * self.rate, 1.0

    def update(self, flat: Tensor, gradient: Tensor, moments: Tensor, rates: tuple[Tensor, Tensor]) -> None:  # noqa: ARG002
        """One step of the weights, in place."""
        flat.sub_(rates[0] * gradient)


@final
@dataclass(frozen=True)
class StepPlan:
    """How to train: `schedule` gives the factor on the rate at each step, counted from 0."""

    optimiser: Adam | Sgd
    n_steps: int
    batch_size: int
    schedule: Callable[[int], float] = lambda step: 1.0  # noqa: ARG005

    def __post_init__(self) -> None:
        if self.n_steps < 1 or self.batch_size < 1:
            raise BadInput(
                f"n_steps and batch_size must be at least 1; {self.n_steps} and {self.batch_size} were given."
            )


@final
@dataclass(frozen=True)
class TrainedRuns:
    """The parameters after the last step, and the loss of every batch before its step."""

    parameters: Parameters
    losses: Float[Tensor, "run step"]


def falling_rate(n_steps: int) -> Callable[[int], float]:
    """A schedule that decreases from 1 to 0 along half a cosine."""
    return lambda step: cosine_decay(step, n_steps)


def stack_runs(runs: Sequence[Mapping[str, Tensor]]) -> Parameters:
    """The parameters of several runs, stacked along a leading axis."""
    return {name: torch.stack([run[name] for run in runs]) for name in runs[0]}


def one_run(stacked: Mapping[str, Tensor], run: int) -> Parameters:
    """The parameters of one run."""
    return {name: tensor[run] for name, tensor in stacked.items()}


def train_side_by_side(
    loss: Loss,
    start: Mapping[str, Float[Tensor, "run ..."]],
    data: Sequence[Tensor],
    rows: Sequence[Int[Tensor, "_"]],
    seeds: Sequence[int],
    plan: StepPlan,
    fixed: Mapping[str, Tensor] | None = None,
    watch: Callable[[int, int], None] = lambda done, goal: None,  # noqa: ARG005
    factors: Sequence[float] | None = None,
) -> TrainedRuns:
    """Trains run r on its own `rows[r]` of the shared `data`, in an order that depends only on `seeds[r]`.

    `fixed` are tensors with a first axis of runs that the loss finds among the parameters and that are not trained:
    what differs between runs of one network. `factors` multiply the rate, run by run. Data and `fixed` lie on the
    device of `start`. A run's result is that of the run alone, up to rounding. To be deterministic on CUDA the loss
    must avoid operations that add in no fixed order (gradients of indexing: multiply with one-hot vectors instead), and
    to be captured it must not read values or synchronise.

    `models.training_loop` is not used: its step reads a loss and a learning rate on the host, which a captured graph
    cannot do, and these runs have steps where it has epochs.
    """
    n_runs = len(next(iter(start.values())))
    if not n_runs == len(rows) == len(seeds) or any(len(own) == 0 for own in rows):
        raise BadInput(f"{n_runs} runs need one seed and one non-empty set of rows each.")
    if factors is not None and len(factors) != n_runs:
        raise BadInput(f"{n_runs} runs need one factor on the rate each; {len(factors)} were given.")
    step = _Step.of(loss, start, data, plan, dict(fixed or {}), factors or [1.0] * n_runs)
    n_held = len(step.order)
    advance = step.captured() if step.flat.is_cuda else step.do
    streams = [_orders(own.cpu(), seed, n_held * plan.batch_size) for own, seed in zip(rows, seeds, strict=True)]
    losses = []
    for begin in range(0, plan.n_steps, n_held):
        n = min(n_held, plan.n_steps - begin)
        step.fill(torch.stack([next(stream).unflatten(0, (n_held, -1)) for stream in streams], dim=1), begin, n)
        for _ in range(n):
            advance()
        losses.append(step.losses[:n].to("cpu", copy=True))
        watch(begin + n, plan.n_steps)
    return TrainedRuns(step.named(step.flat), torch.cat(losses).T.contiguous())


@final
@dataclass(frozen=True, eq=False)
class _Step:
    """One optimiser step of all runs, on tensors that stay in place, so that CUDA can capture it as a graph."""

    gradients: Callable[[Parameters, Parameters, tuple[Tensor, ...]], tuple[Parameters, Tensor]]
    data: Sequence[Tensor]
    plan: StepPlan
    fixed: Parameters
    shapes: Mapping[str, torch.Size]
    flat: Float[Tensor, "run weight"]
    moments: Float[Tensor, "2 run weight"]
    order: Int[Tensor, "step run batch"]
    rates: Float[Tensor, "step 2"]
    losses: Float[Tensor, "step run"]
    place: Int[Tensor, "1"]
    """The next step, counted from the last `fill`."""
    factors: Float[Tensor, "run 1"]

    @staticmethod
    def of(
        loss: Loss,
        start: Mapping[str, Tensor],
        data: Sequence[Tensor],
        plan: StepPlan,
        fixed: Parameters,
        factors: Sequence[float],
    ) -> "_Step":
        """A step from the initial weights, with space for the next thousand batches."""
        flat = torch.cat([tensor.detach().flatten(1) for tensor in start.values()], dim=1)
        n_held, n_runs = min(_CHUNK, plan.n_steps), len(flat)

        def of_one(parameters: Parameters, others: Parameters, batch: tuple[Tensor, ...]) -> Tensor:
            return loss(parameters | others, batch)

        return _Step(
            vmap(grad_and_value(of_one)),
            data,
            plan,
            fixed,
            shapes={name: tensor.shape[1:] for name, tensor in start.items()},
            flat=flat,
            moments=flat.new_zeros(2, *flat.shape),
            order=torch.zeros(n_held, n_runs, plan.batch_size, dtype=torch.long, device=flat.device),
            rates=flat.new_zeros(n_held, 2),
            losses=flat.new_zeros(n_held, n_runs),
            place=torch.zeros(1, dtype=torch.long, device=flat.device),
            factors=flat.new_tensor(list(factors))[:, None],
        )

    def named(self, flat: Float[Tensor, "run weight"]) -> Parameters:
        """The weights by name."""
        pieces = flat.split([shape.numel() for shape in self.shapes.values()], dim=1)
        return {
            name: piece.unflatten(1, shape) for piece, (name, shape) in zip(pieces, self.shapes.items(), strict=True)
        }

    def fill(self, order: Int[Tensor, "step run batch"], begin: int, n: int) -> None:
        """The batches and rates of the next n steps."""
        self.order.copy_(order)
        coming = [self.plan.optimiser.rates(at, self.plan.schedule(at)) for at in range(begin, begin + n)]
        self.rates[:n].copy_(torch.tensor(coming, dtype=self.rates.dtype))
        self.place.zero_()

    def do(self) -> None:
        """One step of all runs, without work on the host."""
        chosen = self.order.index_select(0, self.place)[0]
        batch = tuple(x.index_select(0, chosen.flatten()).unflatten(0, chosen.shape) for x in self.data)
        slopes, values = self.gradients(self.named(self.flat), self.fixed, batch)
        gradient = torch.cat([slopes[name].flatten(1) for name in self.shapes], dim=1)
        rate, root = self.rates.index_select(0, self.place)[0]
        self.plan.optimiser.update(self.flat, gradient, self.moments, (self.factors * rate, root))
        self.losses.index_copy_(0, self.place, values.detach()[None])
        self.place.add_(1)

    def captured(self) -> Callable[[], None]:
        """The step as a CUDA graph; the tensors are unchanged, although capturing needs some warm-up steps."""
        state = (self.flat, self.moments, self.losses, self.place)
        before = [tensor.clone() for tensor in state]
        with torch.cuda.device(self.flat.device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(_N_WARM):
                    self.do()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.do()
            for tensor, kept in zip(state, before, strict=True):
                tensor.copy_(kept)
        return graph.replay


def _orders(rows: Int[Tensor, "_"], seed: int, size: int) -> Iterator[Int[Tensor, "_"]]:
    """An endless stream of batches: all rows in a random order, then in another; a batch may span two orders."""
    rng = torch.Generator().manual_seed(seed)
    left = rows[:0]
    while True:
        shuffles = [left]
        while sum(map(len, shuffles)) < size:
            shuffles.append(rows[torch.randperm(len(rows), generator=rng)])
        drawn = torch.cat(shuffles)
        yield drawn[:size]
        left = drawn[size:]
