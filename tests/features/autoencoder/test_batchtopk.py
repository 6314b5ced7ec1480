import pytest
import torch

from heedful.features.autoencoder.batchtopk import BatchTopK, largest_of_batch, track_threshold
from tests.features.autoencoder.examples import N_ROWS, rows, weights_of


def test_a_row_may_have_more_than_k_active_features_and_another_fewer():
    pre = torch.tensor([[3.0, 1.0, 2.0, 5.0], [-1.0, 0.5, -2.0, -3.0]])
    assert torch.equal(largest_of_batch(pre, 2.0), torch.tensor([[3.0, 1.0, 2.0, 5.0], [0.0, 0.0, 0.0, 0.0]]))


def test_no_activation_is_kept_that_is_not_above_zero():
    pre = torch.tensor([[3.0, -1.0], [-1.0, 0.0]])
    assert torch.equal(largest_of_batch(pre, 2.0), torch.tensor([[3.0, 0.0], [0.0, 0.0]]))


def test_k_is_a_mean_and_may_be_a_fraction():
    kind, x = BatchTopK(k=2.5), rows()
    weights = weights_of(kind)
    code = kind.encode(x, weights, kind.directions(weights), 1.0)
    assert int((code.active > 0).sum()) == 2.5 * N_ROWS


def test_the_threshold_moves_a_hundredth_towards_the_smallest_activation():
    threshold = torch.tensor([0.5], dtype=torch.float64)
    track_threshold(threshold, torch.tensor([[0.0, 2.5], [4.0, 0.0]]))
    assert float(threshold) == pytest.approx(0.99 * 0.5 + 0.01 * 2.5)
    track_threshold(threshold, torch.zeros(2, 2))
    assert float(threshold) == pytest.approx(0.99 * 0.5 + 0.01 * 2.5)


def test_after_training_every_feature_has_the_tracked_threshold():
    kind = BatchTopK(k=3.0)
    weights = weights_of(kind)
    weights.tracked["threshold"].fill_(0.75)
    rule = kind.rule(weights)
    assert rule.k is None
    assert torch.equal(rule.thresholds, torch.full((1, 20), 0.75))
