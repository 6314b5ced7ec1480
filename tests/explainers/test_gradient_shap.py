"""Gradient SHAP against captum on the same draws."""

import numpy as np
import pytest
import torch
from captum.attr import GradientShap

from heedful.perturb.masks import generator
from tests.parity.from_embeddings import CLOSE, COMPARED, compared
from tests.parity.plain_pass import agree


@pytest.mark.parametrize("family", COMPARED)
def test_gradient_shap_is_captum_s_on_the_same_draws(family, monkeypatch):
    text, plain, x, target = compared(family)
    draws = generator(3, plain.document).uniform(size=(20, 1, 1))
    monkeypatch.setattr(np.random, "uniform", lambda low, high, size: draws.reshape(size))
    theirs = GradientShap(plain).attribute(x, torch.zeros_like(x), n_samples=20, stdevs=0.0, target=target)
    monkeypatch.undo()
    ours = plain.explain(text, "gradient-shap", n_samples=20, seed=3)
    agree(ours, plain.tokens(theirs), tolerance=CLOSE)
