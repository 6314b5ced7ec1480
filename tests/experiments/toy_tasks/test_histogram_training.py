"""Phases of training on small networks."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from heedful.experiments.toy_tasks import histogram
from heedful.experiments.toy_tasks.histogram import Sizes
from heedful.experiments.toy_tasks.histogram_training import (
    HistogramRun,
    Phase,
    begin,
    distance,
    fit_runs,
    lift,
    sights,
)
from heedful.experiments.toy_tasks.side_by_side import Adam, Sgd, StepPlan, one_run

SIZES = Sizes(length=4, n_tokens=3, width=8, n_hidden=6)
RUNS = [HistogramRun("semantic", 0, 20), HistogramRun("positional", 0, 20), HistogramRun("none", 1, 5)]


def trained(n_steps=60):
    training, _ = histogram.examples(SIZES, 500, seed=0)
    seen = sights(SIZES, [run.restriction for run in RUNS], "cpu")
    start = begin(SIZES, RUNS, "cpu")
    return start, fit_runs(RUNS, start, seen, training, StepPlan(Adam(0.02), n_steps, 4), lambda done, goal: None)


def test_samples_of_the_smaller_run_are_among_those_of_the_larger():
    few, many = (set(HistogramRun("none", 3, n).rows(100).tolist()) for n in (10, 60))
    assert len(few) == 10
    assert few < many
    assert set(HistogramRun("none", 4, 10).rows(100).tolist()) != few


def test_runs_of_one_seed_start_equal_and_differ_by_their_restriction():
    start, phase = trained()
    assert torch.equal(start["W_e"][0], start["W_e"][1])
    assert not torch.equal(start["W_e"][0], start["W_e"][2])
    assert not torch.equal(phase.weights["W_e"][0], phase.weights["W_e"][1])
    half = SIZES.width // 2
    # Weights on what queries and keys do not see have no gradient but the penalty's, which draws them to zero.
    unseen = (0, slice(None), slice(half, None)), (1, slice(None), slice(half))
    for place in unseen:
        assert (phase.weights["W_q"][place].abs() <= start["W_q"][place].abs().clamp(min=0.03)).all()
    assert not torch.equal(phase.weights["W_q"][0, :, :half], start["W_q"][0, :, :half])


def test_training_minimises_the_regularised_risk():
    """Lecture 9.4: regularised empirical risk. The first step of gradient descent, by hand."""
    training, _ = histogram.examples(SIZES, 500, seed=0)
    run = HistogramRun("none", 1, 5)
    seen, start = sights(SIZES, ["none"], "cpu"), begin(SIZES, [run], "cpu")
    phase = fit_runs([run], start, seen, training, StepPlan(Sgd(0.5), 1, 5), lambda done, goal: None)
    own = {name: tensor[0].clone().requires_grad_() for name, tensor in start.items()}
    rows = run.rows(len(training))
    logits, _ = histogram.predict_counts(own | {"sight": seen[0]}, training.tokens[rows])
    loss = cross_entropy(logits.flatten(0, 1), training.counts[rows].flatten())
    risk = loss + histogram.PENALTY / 2 * sum((tensor**2).sum() for tensor in own.values())
    assert risk.item() - loss.item() > 1e-4
    assert phase.curve[0, 0].item() == pytest.approx(risk.item(), rel=1e-6)
    risk.backward()
    for name, tensor in own.items():
        torch.testing.assert_close(phase.weights[name][0], (tensor - 0.5 * tensor.grad).detach())


def test_the_curve_is_the_mean_loss_of_stretches_and_falls():
    _, phase = trained(n_steps=150)
    assert phase.curve.shape == (3, 50)
    assert (phase.curve[:, -5:].mean(dim=1) < phase.curve[:, :5].mean(dim=1)).all()
    _, short = trained(n_steps=3)
    assert short.curve.shape == (3, 3)


def test_a_phase_survives_being_tensors():
    _, phase = trained(5)
    again = Phase.of(phase.tensors())
    assert torch.equal(again.curve, phase.curve)
    assert again.weights.keys() == phase.weights.keys()
    assert "curve" not in again.weights


def test_the_distance_is_the_moved_share_of_the_length():
    start, phase = trained(5)
    for number in range(3):
        old, new = (torch.cat([w.flatten() for w in one_run(p, number).values()]) for p in (start, phase.weights))
        torch.testing.assert_close(distance(start, phase.weights)[number], (new - old).norm() / old.norm())


def test_lifting_keeps_the_predictions_of_every_run():
    _, phase = trained()
    tokens = torch.tensor([[0, 1, 1, 2]])
    lifted, wide = lift(SIZES, RUNS, phase.weights), sights(SIZES, ["none"] * 3, "cpu")
    narrow = sights(SIZES, [run.restriction for run in RUNS], "cpu")
    for number in range(3):
        before, _ = histogram.predict_counts(one_run(phase.weights, number) | {"sight": narrow[number]}, tokens)
        after, _ = histogram.predict_counts(one_run(lifted, number) | {"sight": wide[number]}, tokens)
        torch.testing.assert_close(after, before, atol=0.1, rtol=0.1)
        assert not torch.equal(after, before)
