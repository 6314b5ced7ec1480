"""Models trained side by side against each model trained alone by torch's own optimisers."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from heedful.errors import BadInput
from heedful.experiments.toy_tasks import side_by_side
from heedful.experiments.toy_tasks.side_by_side import (
    Adam,
    Sgd,
    StepPlan,
    falling_rate,
    one_run,
    stack_runs,
    train_side_by_side,
)

N_ROWS, N_RUNS = 50, 3


def loss(parameters, batch):
    x, y = batch
    hidden = torch.tanh(x @ parameters["A"].T + parameters["b"])
    return cross_entropy(hidden @ parameters["C"].T * parameters["scale"], y)


@pytest.fixture(scope="module")
def task():
    rng = torch.Generator().manual_seed(3)
    x = torch.randn(N_ROWS, 4, generator=rng, dtype=torch.float64)
    y = torch.randint(3, (N_ROWS,), generator=rng)
    shapes = {"A": (5, 4), "b": (5,), "C": (3, 5)}
    runs = [
        {name: torch.randn(shape, generator=rng, dtype=torch.float64) for name, shape in shapes.items()}
        for _ in range(N_RUNS)
    ]
    rows = [torch.arange(50), torch.arange(0, 50, 2), torch.arange(7)]
    fixed = {"scale": torch.tensor([1.0, 0.5, 2.0], dtype=torch.float64)}
    return (x, y), runs, rows, fixed


def alone(task, run, seed, plan, kind):
    """One run with torch's optimiser, its batches drawn in a plain loop."""
    data, runs, rows, fixed = task
    rng = torch.Generator().manual_seed(seed)
    parameters = {name: tensor.clone().requires_grad_() for name, tensor in runs[run].items()}
    settings = {"betas": (0.9, 0.98)} if kind is torch.optim.Adam else {}
    optimiser = kind(parameters.values(), lr=plan.optimiser.rate, **settings)
    waiting, losses = [], []
    for step in range(plan.n_steps):
        while len(waiting) < plan.batch_size:
            waiting += [int(rows[run][place]) for place in torch.randperm(len(rows[run]), generator=rng)]
        batch, waiting = waiting[: plan.batch_size], waiting[plan.batch_size :]
        optimiser.param_groups[0]["lr"] = plan.optimiser.rate * plan.schedule(step)
        optimiser.zero_grad()
        value = loss(parameters | {"scale": fixed["scale"][run]}, tuple(x[batch] for x in data))
        value.backward()
        losses.append(value.item())
        optimiser.step()
    return {name: tensor.detach() for name, tensor in parameters.items()}, torch.tensor(losses, dtype=torch.float64)


@pytest.mark.parametrize(
    ("optimiser", "kind"), [(Adam(0.02, 0.9, 0.98), torch.optim.Adam), (Sgd(0.3), torch.optim.SGD)]
)
def test_every_run_is_what_torch_gives_alone(task, optimiser, kind, monkeypatch):
    monkeypatch.setattr(side_by_side, "_CHUNK", 9)
    data, runs, rows, fixed = task
    plan = StepPlan(optimiser, 40, 8, falling_rate(40))
    trained = train_side_by_side(loss, stack_runs(runs), data, rows, [11, 12, 13], plan, fixed)
    assert trained.losses.shape == (N_RUNS, 40)
    for run in range(N_RUNS):
        parameters, losses = alone(task, run, 11 + run, plan, kind)
        torch.testing.assert_close(trained.losses[run], losses, rtol=1e-9, atol=1e-9)
        for name, tensor in parameters.items():
            torch.testing.assert_close(trained.parameters[name][run], tensor, rtol=1e-8, atol=1e-8)


def test_the_start_is_left_alone_and_the_same_call_gives_the_same_bytes(task):
    data, runs, rows, fixed = task
    start = stack_runs(runs)
    kept = {name: tensor.clone() for name, tensor in start.items()}
    first, second = (
        train_side_by_side(loss, start, data, rows, [1, 2, 3], StepPlan(Adam(0.1), 12, 4), fixed) for _ in range(2)
    )
    for name in start:
        assert torch.equal(start[name], kept[name])
        assert torch.equal(first.parameters[name], second.parameters[name])
        assert not torch.equal(first.parameters[name], kept[name])
    assert torch.equal(first.losses, second.losses)


def test_a_run_sees_its_own_rows_and_all_of_them_once_before_any_twice(task):
    _, runs, rows, _ = task
    seen = []

    def spying(parameters, batch):
        return (parameters["b"] * batch[0].sum() * 0).sum() + batch[0].sum()

    data = (2.0 ** torch.arange(N_ROWS, dtype=torch.float64),)
    trained = train_side_by_side(
        spying,
        stack_runs(runs),
        data,
        rows,
        [1, 2, 3],
        StepPlan(Sgd(0.0), 7, 1),
        watch=lambda *calls: seen.append(calls),
    )
    assert sorted(trained.losses[2].tolist()) == [2.0**row for row in range(7)]
    assert {int(value).bit_length() - 1 for value in trained.losses[1].tolist()} <= set(range(0, 50, 2))
    assert seen == [(7, 7)]


def test_runs_are_stacked_and_separated(task):
    _, runs, _, _ = task
    for number, run in enumerate(runs):
        assert all(torch.equal(one_run(stack_runs(runs), number)[name], tensor) for name, tensor in run.items())


def test_the_cosine_falls_from_one_to_nothing():
    factors = [falling_rate(100)(step) for step in range(101)]
    assert factors[0] == 1.0
    assert factors[50] == pytest.approx(0.5)
    assert factors[100] == pytest.approx(0.0)
    assert factors == sorted(factors, reverse=True)


def test_what_does_not_fit_is_refused(task):
    data, runs, rows, fixed = task
    with pytest.raises(BadInput, match="3 runs need"):
        train_side_by_side(loss, stack_runs(runs), data, rows[:2], [1, 2, 3], StepPlan(Sgd(0.1), 3, 2), fixed)
    with pytest.raises(BadInput, match="must be at least 1"):
        StepPlan(Sgd(0.1), 0, 2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("optimiser", [Adam(0.02), Sgd(0.3)])
def test_the_captured_step_is_the_plain_one(task, optimiser):
    data, runs, rows, fixed = task
    plan, seeds = StepPlan(optimiser, 1_030, 8), [1, 2, 3]
    plain = train_side_by_side(loss, stack_runs(runs), data, rows, seeds, plan, fixed)
    moved = {name: tensor.cuda() for name, tensor in stack_runs(runs).items()}
    there = {name: tensor.cuda() for name, tensor in fixed.items()}
    captured = train_side_by_side(loss, moved, tuple(x.cuda() for x in data), rows, seeds, plan, there)
    torch.testing.assert_close(captured.losses, plain.losses, rtol=1e-6, atol=1e-6)


def test_a_factor_on_the_rate_is_the_run_at_that_rate(task):
    data, runs, rows, fixed = task
    trained = train_side_by_side(
        loss,
        stack_runs(runs),
        data,
        rows,
        [11, 12, 13],
        StepPlan(Adam(1.0, 0.9, 0.98), 20, 8),
        fixed,
        factors=[0.02, 0.05, 0.1],
    )
    for run, rate in enumerate((0.02, 0.05, 0.1)):
        parameters, _ = alone(task, run, 11 + run, StepPlan(Adam(rate, 0.9, 0.98), 20, 8), torch.optim.Adam)
        for name, tensor in parameters.items():
            torch.testing.assert_close(trained.parameters[name][run], tensor, rtol=1e-8, atol=1e-8)
    with pytest.raises(BadInput, match="one factor"):
        train_side_by_side(
            loss, stack_runs(runs), data, rows, [11, 12, 13], StepPlan(Adam(1.0), 2, 8), fixed, factors=[1.0]
        )
