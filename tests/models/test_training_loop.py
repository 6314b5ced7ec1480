"""The training loop against torch by hand, its schedule, and its state file."""

from math import nan

import pytest
import torch
from torch import nn

from heedful.errors import BadInput
from heedful.models.training_loop import Schedule, TrainingLoop, TrainingState, adamw, cosine_decay, seeded, shuffled

X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
Y = X @ torch.tensor([1.0, -2.0, 0.5])
SCHEDULE = Schedule(n_epochs=3, batch_size=8, learning_rate=0.1)


def network():
    model = nn.Linear(3, 1)
    with torch.no_grad():
        model.weight.fill_(0.1)
        model.bias.zero_()
    return model


def squared_error(model, rows):
    return ((model(X[rows])[:, 0] - Y[rows]) ** 2).mean()


def trained(path=None, n_epochs=3, loss=squared_error, finished=lambda _: None):
    model = network()
    state = TrainingState(path, dict(model.named_parameters()), adamw(model, SCHEDULE))
    state.restore(lambda *row: row)
    loop = TrainingLoop(
        lambda epoch: shuffled(len(X), 5, epoch).split(SCHEDULE.batch_size),
        lambda rows: loss(model, rows),
        lambda number, mean_loss: (number, mean_loss),
        seed=5,
        rate=SCHEDULE.rate,
        clipped=list(model.parameters()),
        finished=finished,
    )
    loop.run(n_epochs, state)
    return model, state


def test_it_equals_a_hand_written_loop():
    model, optimiser_steps = network(), 0
    optimiser = torch.optim.AdamW(
        [{"params": [model.weight], "weight_decay": 0.01}, {"params": [model.bias], "weight_decay": 0.0}], lr=0.1
    )
    losses = []
    for epoch in range(3):
        total = 0.0
        for rows in shuffled(len(X), 5, epoch).split(8):
            optimiser_steps += 1
            for group in optimiser.param_groups:
                group["lr"] = SCHEDULE.rate(optimiser_steps / 10)
            loss = squared_error(model, rows)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            total += loss.item() * len(rows)
        losses.append(total / len(X))
    ours, state = trained()
    torch.testing.assert_close(ours.weight, model.weight)
    torch.testing.assert_close(ours.bias, model.bias)
    assert [loss for _, loss in state.epochs] == pytest.approx(losses)


def test_a_killed_run_resumes_to_the_same_bytes(tmp_path):
    whole, _ = trained(tmp_path / "whole.safetensors")

    def kill(epoch):
        if epoch[0] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "state.safetensors", finished=kill)
    seen = []
    resumed, state = trained(tmp_path / "state.safetensors", finished=seen.append)
    assert torch.equal(resumed.weight, whole.weight)
    assert [number for number, _ in state.epochs] == [0, 1, 2]
    assert [number for number, _ in seen] == [2]


def test_the_best_weights_are_kept_beside_the_current_ones(tmp_path):
    model, state = trained(tmp_path / "state.safetensors", n_epochs=1)
    state.keep_best()
    best = model.weight.detach().clone()
    state.save()
    with torch.no_grad():
        model.weight.zero_()
    state.save()
    again = TrainingState(state.path, dict(model.named_parameters()), state.optimiser)
    again.restore(lambda *row: row)
    assert torch.equal(model.weight, torch.zeros(1, 3))
    again.restore_best()
    assert torch.equal(model.weight, best)


def test_a_damaged_state_is_refused(tmp_path):
    (tmp_path / "state.safetensors").write_bytes(b"cut")
    with pytest.raises(BadInput, match="state.safetensors is damaged"):
        trained(tmp_path / "state.safetensors")


def test_a_loss_that_is_not_finite_is_refused():
    with pytest.raises(BadInput, match="not a finite number in epoch 1"):
        trained(loss=lambda model, rows: model(X[rows]).sum() * nan)


def test_the_learning_rate_rises_linearly_and_falls_to_0():
    schedule = Schedule(1, 1, 2.0, warmup_share=0.1)
    assert [schedule.rate(share) for share in (0.05, 0.1, 0.55, 1.0)] == pytest.approx([1.0, 2.0, 1.0, 0.0])
    assert [cosine_decay(done, 4.0) for done in (0.0, 2.0, 4.0)] == pytest.approx([1.0, 0.5, 0.0])


def test_an_order_holds_every_row_and_depends_on_seed_and_epoch():
    order = shuffled(50, 1, 2)
    assert sorted(order.tolist()) == list(range(50))
    assert torch.equal(order, shuffled(50, 1, 2))
    assert not torch.equal(order, shuffled(50, 1, 3))
    assert not torch.equal(order, shuffled(50, 2, 2))


def test_a_seeded_block_leaves_the_random_state_outside_unchanged():
    before = torch.get_rng_state()
    with seeded(3, 1):
        first = torch.rand(4)
    with seeded(3, 1):
        assert torch.equal(torch.rand(4), first)
    assert torch.equal(torch.get_rng_state(), before)


def test_only_matrices_are_decayed():
    groups = adamw(network(), SCHEDULE).param_groups
    assert [(group["weight_decay"], [w.ndim for w in group["params"]]) for group in groups] == [(0.01, [2]), (0.0, [1])]
