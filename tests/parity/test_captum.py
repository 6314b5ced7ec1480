"""Gradients against captum on the model written head by head."""

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, Saliency

import heedful
from tests.straightforward import Straightforward

TEXT = "the good film was not bad"


@pytest.fixture
def setting(tiny):
    plain = Straightforward(tiny)
    e = (plain.embedding(torch.tensor([plain.ids(TEXT)])) + plain.positions).detach().requires_grad_()
    return plain, e


@pytest.mark.parametrize(
    ("method", "reduce"),
    [
        ("gradient-mean", lambda g: g.mean(-1)),
        ("gradient-l1", lambda g: g.abs().sum(-1)),
        ("gradient-l2", lambda g: g.norm(dim=-1)),
    ],
)
def test_reductions_are_of_captum_s_saliency(tiny, setting, method, reduce):
    plain, e = setting
    theirs = Saliency(plain.from_embeddings).attribute(e, target=2, abs=False)
    ours = heedful.explain(tiny, TEXT, method, target=2, unit="token")
    assert np.allclose(ours.scores, reduce(theirs)[0, 1:7].detach().numpy(), atol=1e-12)


def test_gradient_times_input_is_captum_s(tiny, setting):
    plain, e = setting
    theirs = InputXGradient(plain.from_embeddings).attribute(e, target=2).sum(-1)
    ours = heedful.explain(tiny, TEXT, "gradient-x-input", target=2, unit="token")
    assert np.allclose(ours.scores, theirs[0, 1:7].detach().numpy(), atol=1e-12)
