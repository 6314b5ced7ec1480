"""SmoothGrad against captum on the same noise."""

import pytest
import torch
from captum.attr import NoiseTunnel, Saliency

from heedful.perturb.masks import generator
from tests.parity.from_embeddings import CLOSE, compared
from tests.parity.plain_pass import agree


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_smooth_gradients_are_captum_s_on_the_same_noise(family, monkeypatch):
    text, plain, x, target = compared(family)
    noise = torch.from_numpy(generator(3, plain.document).standard_normal((20, *x.shape[1:])))
    monkeypatch.setattr(torch, "normal", lambda _mean, scale: noise * scale)
    scale = 0.1 * float(x.detach().std())
    theirs = NoiseTunnel(Saliency(plain)).attribute(x, nt_samples=20, stdevs=scale, target=target, abs=False)
    monkeypatch.undo()
    ours = plain.explain(text, "smooth-gradient", n_samples=20, seed=3)
    agree(ours, plain.tokens(x * theirs), tolerance=CLOSE)
