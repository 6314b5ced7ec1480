"""Effective attention against scipy's null space."""

import numpy as np
import pytest
import torch
from scipy.linalg import null_space
from torch import nn

import heedful
from heedful.explainers.effective_attention import _effective, value_space
from heedful.models.altered import copied
from heedful.models.attention_hook import Attended
from tests.families import build
from tests.parity.plain_pass import PAPERS, agree, ours, passed


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("family", PAPERS)
def test_effective_attention_is_attention_less_its_part_in_the_null_space(family, number):
    run = passed(family, number)
    heads = []
    for A, v in zip(run.looks, run.values, strict=True):
        for alpha, V in zip(run.readout @ A, v.numpy(), strict=True):
            N = null_space(V.T)
            effective = alpha - N @ (N.T @ alpha)
            assert np.allclose(effective @ V, alpha @ V)
            heads.append(np.abs(effective))
    row, n_source = np.mean(heads, axis=0), run.sizes()[1]
    row = np.concatenate([np.zeros(run.sizes()[0]), row]) if n_source else row
    agree(ours(family, "effective-attention", number), row, n_source)


@pytest.mark.parametrize("difference", [1e-7, 3e-7, 1e-6, 1e-5, 1e-3])
@pytest.mark.parametrize("n_tokens", [6, 12])
def test_the_error_of_single_precision_holds_the_scores_of_double_precision(n_tokens, difference):
    rng = np.random.default_rng(0)
    # Values of equal words differ by little: their null space is that of the differences.
    V = rng.normal(size=(5, 1, 8)) + difference * rng.normal(size=(5, n_tokens, 8))
    q, k = rng.normal(size=(2, 5, n_tokens, 4))
    q, k, v = (torch.from_numpy(x).float()[None] for x in (q, k, V))
    call = Attended(nn.Module(), q, k, v, None, False, 0.5)
    rows, error = _effective(call, torch.eye(n_tokens, dtype=torch.float64)[:1])
    expected = []
    for alpha, values in zip(call.maps()[0, :, 0].double().numpy(), V, strict=True):
        N = null_space(values.T, rcond=1e-13)
        expected.append(np.abs(alpha - N @ (N.T @ alpha)))
    gap = np.abs(rows[0].numpy() - np.mean(expected, axis=0))
    assert (gap <= error[0].numpy() + 1e-6).all()
    if difference == 1e-7:
        assert gap.max() > 0.01
    if difference == 1e-3:
        assert error.max() < 0.05


def test_the_error_is_small_where_values_are_independent():
    single = copied(build("bert"))
    single.network.float()
    explanation = heedful.explain(single, "good film", "effective-attention", unit="token")
    assert 0 <= explanation.error.max() < 1e-4 * explanation.scores.max()


def test_effective_attention_is_the_shortest_row_with_the_same_output_and_leaves_hidden_keys_out():
    q, k, v = (torch.randn(1, 3, 9, size, generator=torch.Generator().manual_seed(size)).double() for size in (5, 5, 4))
    seen = torch.ones(1, 1, 1, 9, dtype=torch.bool)
    seen[..., 6:] = False
    space = value_space(Attended(nn.Module(), q, k, v, seen, False, 0.5), torch.eye(9, dtype=torch.float64)[:1])
    for alpha, projected, V in zip(space.alpha[0].numpy(), space.projected[0].numpy(), v[0].numpy(), strict=True):
        assert alpha[6:].tolist() == projected[6:].tolist() == [0, 0, 0]
        shortest = np.linalg.lstsq(V[:6].T, V[:6].T @ alpha[:6], rcond=None)[0]
        np.testing.assert_allclose(projected[:6], shortest, atol=1e-12)
