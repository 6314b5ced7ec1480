"""Norms of value vectors against a loop over heads, queries and keys."""

import numpy as np
import pytest

from tests.parity.plain_pass import PAPERS, agree, ours, passed


@pytest.mark.parametrize("family", PAPERS)
def test_value_norms_are_lengths_of_weighted_vectors(family):
    run = passed(family)
    norms = np.zeros((len(run.looks), run.looks[0].shape[-1]))
    for layer, (A, v, W_O) in enumerate(zip(run.looks, run.values, run.joins, strict=True)):
        for s in np.flatnonzero(run.readout):
            for t in range(norms.shape[1]):
                written = sum(A[head, s, t] * (v[head, t] @ W_O[head]).numpy() for head in range(len(v)))
                norms[layer, t] += run.readout[s] * np.linalg.norm(written)
    row, n_source = norms.mean(axis=0), run.sizes()[1]
    row = np.concatenate([np.zeros(run.sizes()[0]), row]) if n_source else row
    agree(ours(family, "value-norms"), row, n_source)
