import numpy as np
import pytest
import torch

from heedful.features.autoencoder import smallest_kept
from heedful.features.autoencoder.batchtopk import BatchTopK, largest_of_batch
from tests.features.autoencoder.examples import N_ROWS, active_of, rows, weights_of


def test_a_row_may_have_more_than_k_active_features_and_another_fewer():
    pre = torch.tensor([[3.0, 1.0, 2.0, 5.0], [-1.0, 0.5, -2.0, -3.0]])
    active, smallest = largest_of_batch(pre, 2.0)
    assert torch.equal(active, torch.tensor([[3.0, 1.0, 2.0, 5.0], [0.0, 0.0, 0.0, 0.0]]))
    assert smallest == 1


def test_no_activation_is_kept_that_is_not_above_zero():
    pre = torch.tensor([[3.0, -1.0], [-1.0, 0.0]])
    active, smallest = largest_of_batch(pre, 2.0)
    assert torch.equal(active, torch.tensor([[3.0, 0.0], [0.0, 0.0]]))
    assert smallest == 3
    nothing, none = largest_of_batch(-pre.abs(), 2.0)
    assert torch.equal(nothing, torch.zeros(2, 2))
    assert none == torch.inf


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_that_equal_the_smallest_one_are_all_kept(dtype):
    pre = torch.tensor([[2.0, 1.0, 1.0], [1.0, 3.0, 0.5]], dtype=dtype, requires_grad=True)
    active, smallest = largest_of_batch(pre, 1.5)
    assert torch.equal(active, torch.tensor([[2.0, 1.0, 1.0], [1.0, 3.0, 0.0]], dtype=dtype))
    assert smallest == 1
    active.sum().backward()
    assert torch.equal(pre.grad, (active > 0).to(dtype))


def test_it_keeps_what_sorting_keeps():
    pre = torch.randn(64, 50, generator=torch.Generator().manual_seed(0))
    for k in (0.3, 4.0, 20.5, 50.0):
        n = max(1, int(k * 64))
        floor = max(float(np.sort(pre.numpy(), axis=None)[-n]), np.finfo("float32").tiny)
        expected = torch.where(pre >= floor, pre, 0.0)
        active, smallest = largest_of_batch(pre, k)
        assert torch.equal(active, expected)
        assert smallest == expected[expected > 0].min()


def test_k_is_a_mean_and_may_be_a_fraction():
    kind, x = BatchTopK(k=2.5), rows()
    weights = weights_of(kind)
    code = kind.encode(x, weights, kind.directions(weights), 1.0)
    assert int((code.active > 0).sum()) == 2.5 * N_ROWS


def test_after_training_every_feature_has_the_mean_of_what_batches_keep_at_least():
    kind, batches = BatchTopK(k=3.0), rows(30).split(10)
    weights = weights_of(kind)
    smallest = [active[active > 0].min() for active in (active_of(kind, x, weights) for x in batches)]
    assert float(smallest_kept(kind, weights, batches)) == pytest.approx(float(np.mean(smallest)))
    rule = kind.rule(weights, torch.tensor([0.75]))
    assert rule.k is None
    assert torch.equal(rule.thresholds, torch.full((1, 20), 0.75))
