"""Effective attention against scipy's null space."""

import numpy as np
import pytest
from scipy.linalg import null_space

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
