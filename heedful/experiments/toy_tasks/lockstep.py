"""Many small models of one network, trained side by side, so that one kernel does the work of all.

Parameters are stacked with a first axis of runs. A step has no work on the host: which rows come next, the rate and the
losses lie in tensors that are filled and emptied every thousand steps. On CUDA the step is therefore captured once as a
graph and replayed; on the CPU the same step is called.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sqrt
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import grad_and_value, vmap

from heedful.errors import BadInput

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
        """The rate over the first moment's bias, and one over the root of the second's; steps count from 0."""
        bias_1, bias_2 = 1 - self.beta_1 ** (step + 1), 1 - self.beta_2 ** (step + 1)
        return factor * self.rate / bias_1, 1 / sqrt(bias_2)

    def update(self, flat: Tensor, gradient: Tensor, moments: Tensor, rates: Sequence[Tensor]) -> None:
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
        return factor * self.rate, 1.0

    def update(self, flat: Tensor, gradient: Tensor, moments: Tensor, rates: Sequence[Tensor]) -> None:  # noqa: ARG002
        flat.sub_(rates[0] * gradient)


@final
@dataclass(frozen=True)
class Plan:
    """How to train: `schedule` gives the factor on the rate at each step, counted from 0."""

    optimiser: Adam | Sgd
    n_steps: int
    batch_size: int
    schedule: Callable[[int], float] = lambda step: 1.0  # noqa: ARG005

    def __post_init__(self) -> None:
        if self.n_steps < 1 or self.batch_size < 1:
            raise BadInput(
                f"At least one step and one row a batch are needed; {self.n_steps}, {self.batch_size} given."
            )


@final
@dataclass(frozen=True)
class Trained:
    """The parameters after the last step, and the loss of every batch before its step."""

    parameters: Parameters
    losses: Float[Tensor, "run step"]


def cosine(n_steps: int) -> Callable[[int], float]:
    """A schedule that falls from 1 to 0 as half a wave."""
    return lambda step: (1 + cos(pi * step / n_steps)) / 2


def stack(runs: Sequence[Mapping[str, Tensor]]) -> Parameters:
    """The parameters of several runs as one, with a first axis of runs."""
    return {name: torch.stack([run[name] for run in runs]) for name in runs[0]}


def one_of(stacked: Mapping[str, Tensor], run: int) -> Parameters:
    """The parameters of one run."""
    return {name: tensor[run] for name, tensor in stacked.items()}


def train(
    loss: Loss,
    start: Mapping[str, Float[Tensor, "run ..."]],
    data: Sequence[Tensor],
    rows: Sequence[Int[Tensor, "_"]],
    seeds: Sequence[int],
    plan: Plan,
    fixed: Mapping[str, Tensor] | None = None,
    watch: Callable[[int, int], None] = lambda done, goal: None,  # noqa: ARG005
    factors: Sequence[float] | None = None,
) -> Trained:
    """Trains run r on its own `rows[r]` of the shared `data`, in an order that `seeds[r]` alone decides.

    `fixed` are tensors with a first axis of runs that the loss finds among the parameters and that are not trained:
    what differs between runs of one network. `factors` multiply the rate, run by run. Data and `fixed` lie on the
    device of `start`. A run's result is that of the run alone, up to rounding. To give the same bytes twice on CUDA the
    loss must avoid what adds in any order there (gradients of indexing: multiply with one-hot vectors), and to be
    captured it must not look at values or wait.
    """
    first = next(iter(start.values()))
    n_runs, device = len(first), first.device
    if not n_runs == len(rows) == len(seeds) or any(len(own) == 0 for own in rows):
        raise BadInput(f"{n_runs} runs need as many seeds and as many non-empty sets of rows.")
    if factors is not None and len(factors) != n_runs:
        raise BadInput(f"{n_runs} runs need as many factors on the rate; {len(factors)} given.")
    shapes = {name: tensor.shape[1:] for name, tensor in start.items()}
    sizes = [shape.numel() for shape in shapes.values()]
    flat = torch.cat([tensor.detach().flatten(1) for tensor in start.values()], dim=1)
    moments = flat.new_zeros(2, *flat.shape)
    own = dict(fixed or {})
    n_held = min(_CHUNK, plan.n_steps)
    order = torch.zeros(n_held, n_runs, plan.batch_size, dtype=torch.long, device=device)
    rates, losses = flat.new_zeros(n_held, 2), flat.new_zeros(n_held, n_runs)
    place = torch.zeros(1, dtype=torch.long, device=device)
    speed = flat.new_tensor(list(factors) if factors is not None else [1.0] * n_runs)[:, None]

    def named(values: Tensor) -> Parameters:
        pieces = values.split(sizes, dim=1)
        return {name: piece.unflatten(1, shape) for piece, (name, shape) in zip(pieces, shapes.items(), strict=True)}

    def of_one(parameters: Parameters, others: Parameters, batch: tuple[Tensor, ...]) -> Tensor:
        return loss(parameters | others, batch)

    of_all = vmap(grad_and_value(of_one))

    def step() -> None:
        chosen = order.index_select(0, place).flatten()
        batch = tuple(x.index_select(0, chosen).unflatten(0, (n_runs, plan.batch_size)) for x in data)
        slopes, values = of_all(named(flat), own, batch)
        gradient = torch.cat([slopes[name].flatten(1) for name in shapes], dim=1)
        rate, root = rates.index_select(0, place)[0]
        plan.optimiser.update(flat, gradient, moments, (speed * rate, root))
        losses.index_copy_(0, place, values.detach()[None])
        place.add_(1)

    advance = _captured(step, (flat, moments, losses, place)) if device.type == "cuda" else step
    streams = [_orders(mine.cpu(), seed, n_held * plan.batch_size) for mine, seed in zip(rows, seeds, strict=True)]
    seen = []
    for begin in range(0, plan.n_steps, n_held):
        n = min(n_held, plan.n_steps - begin)
        order.copy_(torch.stack([next(stream).unflatten(0, (n_held, -1)) for stream in streams], dim=1))
        coming = [plan.optimiser.rates(at, plan.schedule(at)) for at in range(begin, begin + n)]
        rates[:n].copy_(torch.tensor(coming, dtype=rates.dtype))
        place.zero_()
        for _ in range(n):
            advance()
        seen.append(losses[:n].to("cpu", copy=True))
        watch(begin + n, plan.n_steps)
    return Trained(named(flat), torch.cat(seen).T.contiguous())


def _orders(rows: Int[Tensor, "_"], seed: int, size: int) -> Iterator[Int[Tensor, "_"]]:
    """Rows without end, so many at a time: all in a random order, then all in another, as a batch may begin one."""
    chance = torch.Generator().manual_seed(seed)
    left = rows[:0]
    while True:
        shuffles = [left]
        while sum(map(len, shuffles)) < size:
            shuffles.append(rows[torch.randperm(len(rows), generator=chance)])
        drawn = torch.cat(shuffles)
        yield drawn[:size]
        left = drawn[size:]


def _captured(step: Callable[[], None], state: Sequence[Tensor]) -> Callable[[], None]:
    """The step as a CUDA graph; `state` is as before, though capturing needs some steps to warm up."""
    before = [tensor.clone() for tensor in state]
    with torch.cuda.device(state[0].device):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_N_WARM):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        for tensor, kept in zip(state, before, strict=True):
            tensor.copy_(kept)
    return graph.replay
