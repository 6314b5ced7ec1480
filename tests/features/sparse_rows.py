"""Rows that are sparse combinations of known directions."""

import numpy as np
import torch


def sparse_rows(n=4000, d_e=16, n_features=24, k=2, seed=0):
    """Rows of k of the directions each, in single precision, and the directions."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(n_features, d_e))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    active = np.zeros((n, n_features))
    places = rng.random((n, n_features)).argsort(axis=1)[:, :k]
    np.put_along_axis(active, places, 1 + rng.random((n, k)), axis=1)
    return torch.from_numpy(active @ directions + 0.3).float(), directions
