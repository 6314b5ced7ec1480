import numpy as np
import pytest
import torch

from heedful.features.autoencoder.jumprelu import JumpRelu
from tests.features.autoencoder.examples import arrays, rebuilt, rows, weights_of


@pytest.mark.parametrize("norms", ["unit", "free"])
@pytest.mark.parametrize("penalty_of", ["target", "count"])
def test_thresholds_learn_from_the_activations_in_their_window(penalty_of, norms):
    kind = JumpRelu(k=3.0, first_threshold=0.3, bandwidth=0.4, penalty_of=penalty_of, sparsity=0.7, norms=norms)
    x, weights = rows(), weights_of(kind)
    theta = weights.trained["threshold"].requires_grad_(True)
    kind.loss(x, weights, 1.0)[0].backward()
    W_enc, b_enc, W_dec, b_dec = arrays(weights)
    z = (x.numpy() - b_dec) @ W_enc.T + b_enc
    window = (np.abs(z - theta.detach().numpy()) < 0.2) / 0.4
    active = np.where(z > theta.detach().numpy(), z, 0)
    left = x.numpy() - rebuilt(active * np.linalg.norm(W_dec, axis=1), weights)
    n_active = (active > 0).sum(axis=1, keepdims=True)
    count = np.ones_like(n_active) if penalty_of == "count" else 4 / 3 * (n_active - 3)
    slopes = (2 * (left @ W_dec.T) * theta.detach().numpy() - 0.7 * count) * window
    np.testing.assert_allclose(theta.grad.numpy(), slopes.mean(axis=0), rtol=1e-9)


def test_a_threshold_below_zero_is_taken_back_to_zero_and_can_rise_again():
    kind = JumpRelu(k=3.0, bandwidth=2.0)
    weights = weights_of(kind)
    theta = weights.trained["threshold"]
    theta.fill_(-0.2)
    theta.requires_grad_(True)
    loss, code = kind.loss(rows(), weights, 1.0)
    loss.backward()
    assert torch.equal(theta.detach(), torch.zeros(20).double())
    assert bool((code.active >= 0).all())
    assert bool((theta.grad < 0).any())


def test_thresholds_of_the_dictionary_are_in_units_of_its_activations():
    kind = JumpRelu(k=3.0, norms="free")
    weights = weights_of(kind)
    expected = weights.trained["threshold"] * weights.W_dec.norm(dim=1)
    torch.testing.assert_close(kind.rule(weights, torch.zeros(0)).thresholds, expected[None])
