"""Gradient-weighted attention against the equations of Chefer, Gur & Wolf with whole matrices and autograd."""

import numpy as np
import pytest
import torch

from heedful.explainers.relevance import descent
from tests.parity.plain_pass import PAPERS, agree, ours, passed


def raised(run):
    """Ā = E_h (∇A ⊙ A)⁺ of every layer, Eq. (5)."""
    slopes = torch.autograd.grad(run.logits.max(), run.maps, retain_graph=True)
    return [(A * slope).clamp(min=0)[0].mean(dim=0).detach().numpy() for A, slope in zip(run.maps, slopes, strict=True)]


def normalised(R):
    """R̄, Eqs. (8) and (9)."""
    rest = R - np.eye(len(R))
    for row in rest:
        if row.sum() > 0:
            row /= row.sum()
    return rest + np.eye(len(R))


def relevance(run):
    """Eqs. (6), (7) through self-attention, Eq. (10) through cross-attention; Eq. (11) adds nothing as R_qs is zero."""
    n_own, n_source = run.sizes()
    R_tt, R_ss, R_ts = np.eye(n_own), np.eye(n_source), np.zeros((n_own, n_source))
    for kind, A in zip(run.kinds, raised(run), strict=True):
        if kind == "source":
            R_ss = R_ss + A @ R_ss
        elif kind == "self":
            R_tt, R_ts = R_tt + A @ R_tt, R_ts + A @ R_ts
        else:
            R_ts = R_ts + normalised(R_tt).T @ A @ normalised(R_ss)
    return run.readout @ np.concatenate([R_tt, R_ts], axis=1)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", PAPERS)
def test_gradient_attention_is_that_of_chefer_gur_and_wolf(family, number):
    run = passed(family, number)
    agree(ours(family, "gradient-attention", number), relevance(run), run.sizes()[1])


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "vit", "torch"])
def test_gradient_attention_is_the_same_when_layers_are_run_again(family, monkeypatch):
    run = passed(family)
    monkeypatch.setattr(descent, "PASS_MEMORY", 1)
    explanation = ours(family, "gradient-attention")
    assert explanation.facts["forwards"] == 2
    agree(explanation, relevance(run))
