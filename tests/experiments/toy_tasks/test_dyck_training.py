"""The settings's strings, the loss against loops, and training of a few small networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.experiments.toy_tasks.dyck import Dyck
from heedful.experiments.toy_tasks.dyck_network import DyckParts
from heedful.experiments.toy_tasks.dyck_training import (
    DyckRun,
    DyckSettings,
    next_token_loss,
    quick_dyck_settings,
    train_runs,
)

TINY = replace(
    quick_dyck_settings(0), language=Dyck(2, 2), width=14, n_training=300, n_epochs=3, batch_size=20, n_asked=500
)
RUNS = [
    DyckRun("whole", DyckParts(), 0),
    DyckRun("no norm", DyckParts(norm=False), 1),
    DyckRun("whole", DyckParts(), 2),
]


@pytest.mark.parametrize(
    "settings", [TINY, quick_dyck_settings(1), DyckSettings(n_training=2_000, n_asked=1_000)], ids=["t", "q", "f"]
)
def test_held_out_strings_are_of_the_training_lengths_and_were_not_trained_on(settings):
    seen = set(map(tuple, settings.training.tolist()))
    held_out = list(map(tuple, settings.held_out.tolist()))
    assert len(held_out) == len(set(held_out)) > 20
    assert not seen & set(held_out)
    assert settings.language.is_valid(settings.held_out).all()
    lengths = settings.language.lengths(settings.held_out)
    assert settings.shortest <= lengths.min()
    assert lengths.max() <= settings.longest


def test_longer_strings_are_longer():
    settings = DyckSettings(n_far=20, n_training=10)
    lengths = settings.language.lengths(settings.longer)
    assert lengths.min() >= 400 > settings.longest
    assert lengths.max() <= 500


def test_prefixes_differ_and_leave_nothing_open():
    settings = DyckSettings(n_far=200, n_training=10)
    first, second = settings.prefixed
    n = settings.n_before
    assert first.shape == second.shape == (200, settings.longest)
    assert settings.language.is_valid(first).all()
    assert settings.language.is_valid(second).all()
    assert settings.language.is_valid(first[:, :n]).all()
    assert (settings.language.lengths(first[:, :n]) == n).all()
    assert (first[:, :n] != second[:, :n]).any()
    np.testing.assert_array_equal(first[:, n:], second[:, n:])
    np.testing.assert_array_equal(settings.language.last_open(first)[:, n:], settings.language.last_open(second)[:, n:])


def test_the_loss_is_the_mean_over_the_rows_of_the_strings():
    run = RUNS[0]
    weights = {k: w.double() for k, w in (TINY.network.initial(3) | TINY.fixed(run)).items()}
    tokens = TINY.training[:7]
    log_probabilities = torch.log_softmax(TINY.network.run(weights, torch.tensor(tokens)).logits, dim=-1)
    losses = []
    for string, row in enumerate(tokens.tolist()):
        word = [token for token in row if token != TINY.language.end]
        losses += [-log_probabilities[string, place, token] for place, token in enumerate([*word, TINY.language.end])]
    expected = torch.stack(losses).mean()
    torch.testing.assert_close(next_token_loss(TINY, weights, torch.tensor(tokens)), expected, rtol=1e-12, atol=0)


@pytest.mark.slow
def test_training_learns_and_gives_the_same_bytes_twice():
    calls = []
    trained = train_runs(TINY, RUNS, "cpu", lambda done, goal: calls.append((done, goal)))
    again = train_runs(TINY, RUNS, "cpu", lambda done, goal: None)
    assert calls[-1] == (45, 45)
    assert all(torch.equal(weight, again[name]) for name, weight in trained.items())
    tokens = torch.tensor(TINY.held_out)
    for index, run in enumerate(RUNS):
        own = {name: weight[index] for name, weight in trained.items()}
        before = next_token_loss(TINY, TINY.network.initial(run.seed) | TINY.fixed(run), tokens)
        assert next_token_loss(TINY, own | TINY.fixed(run), tokens) < 0.75 * before


def test_a_run_among_others_is_the_run_alone():
    together = train_runs(TINY, RUNS, "cpu", lambda done, goal: None)
    alone = train_runs(TINY, RUNS[1:2], "cpu", lambda done, goal: None)
    for name, weight in alone.items():
        torch.testing.assert_close(together[name][1], weight[0], rtol=1e-2, atol=1e-2)
