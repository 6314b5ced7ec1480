"""The course's strings, the loss against loops, and training of a few small networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.experiments.toy_tasks.dyck import Dyck
from heedful.experiments.toy_tasks.dyck_network import Parts
from heedful.experiments.toy_tasks.dyck_training import Course, Run, next_token_loss, quick_course, train_runs

TINY = replace(quick_course(0), language=Dyck(2, 2), width=14, n_training=300, n_epochs=3, batch_size=20, n_asked=500)
RUNS = [Run("whole", Parts(), 0), Run("no norm", Parts(norm=False), 1), Run("whole", Parts(), 2)]


@pytest.mark.parametrize(
    "course", [TINY, quick_course(1), Course(n_training=2_000, n_asked=1_000)], ids=["t", "q", "f"]
)
def test_held_out_strings_are_of_the_training_lengths_and_were_not_trained_on(course):
    seen = set(map(tuple, course.training.tolist()))
    held_out = list(map(tuple, course.held_out.tolist()))
    assert len(held_out) == len(set(held_out)) > 20
    assert not seen & set(held_out)
    assert course.language.is_valid(course.held_out).all()
    lengths = course.language.lengths(course.held_out)
    assert course.shortest <= lengths.min()
    assert lengths.max() <= course.longest


def test_longer_strings_are_longer():
    course = Course(n_far=20, n_training=10)
    lengths = course.language.lengths(course.longer)
    assert lengths.min() >= 400 > course.longest
    assert lengths.max() <= 500


def test_prefixes_differ_and_leave_nothing_open():
    course = Course(n_far=200, n_training=10)
    first, second = course.prefixed
    n = course.n_before
    assert first.shape == second.shape == (200, course.longest)
    assert course.language.is_valid(first).all()
    assert course.language.is_valid(second).all()
    assert course.language.is_valid(first[:, :n]).all()
    assert (course.language.lengths(first[:, :n]) == n).all()
    assert (first[:, :n] != second[:, :n]).any()
    np.testing.assert_array_equal(first[:, n:], second[:, n:])
    np.testing.assert_array_equal(course.language.last_open(first)[:, n:], course.language.last_open(second)[:, n:])


def test_the_loss_is_the_mean_over_the_rows_of_the_strings():
    run = RUNS[0]
    weights = {k: w.double() for k, w in (TINY.network.initial(3) | TINY.fixed(run)).items()}
    tokens = TINY.training[:7]
    said = torch.log_softmax(TINY.network.run(weights, torch.tensor(tokens)).logits, dim=-1)
    losses = []
    for string, row in enumerate(tokens.tolist()):
        word = [token for token in row if token != TINY.language.end]
        losses += [-said[string, place, token] for place, token in enumerate([*word, TINY.language.end])]
    expected = torch.stack(losses).mean()
    torch.testing.assert_close(next_token_loss(TINY, weights, torch.tensor(tokens)), expected, rtol=1e-12, atol=0)


def test_training_learns_and_gives_the_same_bytes_twice():
    told = []
    trained = train_runs(TINY, RUNS, "cpu", lambda done, goal: told.append((done, goal)))
    again = train_runs(TINY, RUNS, "cpu", lambda done, goal: None)
    assert told[-1] == (45, 45)
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
