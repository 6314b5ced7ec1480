"""The gradient of Theorem 4.1 against autograd of the model written head by head."""

import numpy as np
import pytest
import torch

from heedful.theory.gradient import gradient, query_gradient
from tests.conftest import tiny_model
from tests.straightforward import Straightforward


def both(model, text, target):
    plain = Straightforward(model)
    e = (plain.embedding(torch.tensor([plain.ids(text)])) + plain.positions).detach().requires_grad_()
    c = torch.tensor(target).to(e)
    (by_autograd,) = torch.autograd.grad(plain.from_embeddings(e)[0] @ c, e)
    net = model.network
    with torch.no_grad():
        q = torch.stack([head.query(e[0, 0]) for head in plain.heads])
        W_l = torch.einsum("c,kcd->kd", c, net.W_l)
        held = gradient(e[0], q, net.W_k, net.W_v, net.b_v, W_l)
        extra = query_gradient(e[0], q, net.W_q, net.W_k, net.W_v, net.b_v, W_l)
    return by_autograd[0].numpy(), held.numpy(), extra.numpy()


@pytest.mark.parametrize("changes", [{}, {"n_heads": 1, "bias": False}, {"n_heads": 6, "T_max": 40, "d_att": 3}])
@pytest.mark.parametrize("text", ["good film , good story", "the film was not very bad !" * 3, "dull"])
def test_it_equals_autograd_at_every_position_but_cls(changes, text):
    autograd, held, extra = both(tiny_model(**changes), text, [1.0, -0.5, 0.25])
    assert np.abs(held[1:] - autograd[1:]).max() < 1e-9
    assert np.abs(held[0] - autograd[0]).max() > 1e-6
    assert np.abs(held[0] + extra - autograd[0]).max() < 1e-9


def test_it_equals_autograd_on_the_bundled_model_in_float64(paper):
    from copy import deepcopy

    model = deepcopy(paper)
    model.network.double()
    autograd, held, extra = both(model, "attention based explanations are popular but questionable", [0.0, 1.0])
    held[0] += extra
    assert np.abs(held - autograd).max() < 1e-9
