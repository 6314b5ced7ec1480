"""Every kind of autoencoder in small, with weights nobody trained, and its definition written out in NumPy."""

from dataclasses import replace

import numpy as np
import torch

from heedful.features.autoencoder import Weights
from heedful.features.autoencoder.batchtopk import BatchTopK
from heedful.features.autoencoder.jumprelu import JumpRelu
from heedful.features.autoencoder.matryoshka import Matryoshka
from heedful.features.autoencoder.relu import Relu
from heedful.features.autoencoder.topk import RowTopK

D_E, WIDTH, N_ROWS = 6, 20, 40
PLAIN = Matryoshka(k=3.0, widths="5,10", order="index", inner="joint", passes=0, first_k=1.0)
"""Matryoshka as its paper has it."""
EXAMPLES = {
    "relu": Relu(),
    "topk": RowTopK(k=3),
    "batchtopk": BatchTopK(k=3.0),
    "jumprelu": JumpRelu(k=3.0, first_threshold=0.3, bandwidth=0.4),
    "jumprelu-count": JumpRelu(k=3.0, first_threshold=0.3, bandwidth=0.4, penalty_of="count"),
    "matryoshka": Matryoshka(k=3.0, widths="5,10"),
    "matryoshka-paper": PLAIN,
    "matryoshka-two-passes": Matryoshka(k=3.0, widths="5,10", passes=2),
}
EVERY = {f"{name}-{norms}": replace(kind, norms=norms) for name, kind in EXAMPLES.items() for norms in ("unit", "free")}


def rows(n=N_ROWS, seed=0, d_e=D_E):
    """Rows in double precision whose mean is not 0."""
    return torch.from_numpy(np.random.default_rng((seed, 1)).normal(size=(n, d_e)) + 0.5)


def weights_of(kind, seed=0, width=WIDTH, d_e=D_E):
    """Random weights in double precision; decoder rows of any length, unless the kind keeps them at 1."""
    rng = np.random.default_rng((seed, 2))
    unit = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(width, d_e))), dim=1)
    W_dec = unit if kind.norms == "unit" else unit * torch.from_numpy(0.5 + rng.random((width, 1)))
    trained, tracked = kind.initial(W_dec)
    trained = {name: value + torch.from_numpy(0.1 * rng.random(width)) for name, value in trained.items()}
    W_enc = unit + torch.from_numpy(0.3 * rng.normal(size=(width, d_e)))
    b_enc, b_dec = torch.from_numpy(0.2 * rng.normal(size=width)), torch.from_numpy(0.5 * rng.normal(size=d_e))
    return Weights(W_enc, b_enc, W_dec, b_dec, torch.zeros(width).double(), trained, tracked)


def arrays(weights):
    """The four weights as arrays."""
    return tuple(tensor.detach().numpy() for tensor in (weights.W_enc, weights.b_enc, weights.W_dec, weights.b_dec))


def pre_of(kind, x, weights):
    """‖W_dec,j‖ (W_enc,j · (x − b_pre) + b_enc,j), one number at a time."""
    W_enc, b_enc, W_dec, b_dec = arrays(weights)
    centred = x.numpy() - (b_dec if kind.centres else 0)
    return np.array(
        [[np.sqrt((W_dec[j] ** 2).sum()) * (W_enc[j] @ row + b_enc[j]) for j in range(len(W_enc))] for row in centred]
    )


def rebuilt(active, weights, features=slice(None)):
    """Σ_j s_j W_dec,j / ‖W_dec,j‖ + b_dec, over some features."""
    _, _, W_dec, b_dec = arrays(weights)
    directions = W_dec / np.linalg.norm(W_dec, axis=1, keepdims=True)
    return active[:, features] @ directions[features] + b_dec


def largest_of_all(pre, n):
    """The n largest values of a table where they are above 0, else 0."""
    order = np.argsort(-pre, axis=None)[:n]
    kept = np.zeros(pre.size, dtype=bool)
    kept[order] = True
    return np.where(kept.reshape(pre.shape) & (pre > 0), pre, 0)


def active_of(kind, x, weights, share=1.0):
    """The activations of every kind, from its definition."""
    pre = pre_of(kind, x, weights)
    if isinstance(kind, Relu):
        return np.maximum(pre, 0)
    if isinstance(kind, RowTopK):
        return np.stack([largest_of_all(row, kind.k) for row in pre])
    if isinstance(kind, JumpRelu):
        _, _, W_dec, _ = arrays(weights)
        theta = weights.trained["threshold"].detach().numpy() * np.linalg.norm(W_dec, axis=1)
        return np.where(pre > theta, pre, 0)
    k = kind.k
    if isinstance(kind, Matryoshka):
        k = kind.first_k * kind.k + (kind.k - kind.first_k * kind.k) * share
    active = largest_of_all(pre, int(k * len(pre)))
    for _ in range(kind.passes if isinstance(kind, Matryoshka) else 0):
        left = x.numpy() - rebuilt(active, weights)
        W_enc, _, W_dec, _ = arrays(weights)
        pre = pre + kind.step * (left @ W_enc.T) * np.linalg.norm(W_dec, axis=1)
        active = largest_of_all(pre, int(k * len(pre)))
    return active


def loss_of(kind, x, weights, share=1.0):
    """The loss without revival, from the definition of every kind."""
    active = active_of(kind, x, weights, share)

    def error(rebuilt_rows):
        return ((x.numpy() - rebuilt_rows) ** 2).sum(axis=1).mean()

    total = error(rebuilt(active, weights))
    if isinstance(kind, Relu):
        return total + kind.sparsity * min(1, share / kind.ramp) * active.sum(axis=1).mean()
    if isinstance(kind, JumpRelu):
        n_active = (active > 0).sum(axis=1)
        each = n_active if kind.penalty_of == "count" else 2 / kind.k * (n_active - kind.k) ** 2
        return total + kind.sparsity * min(1, share / kind.ramp) * each.mean()
    if isinstance(kind, Matryoshka):
        # The tracked frequencies begin at 0, so that they order features as those of the first batch do.
        frequency = (active > 0).mean(axis=0)
        order = np.argsort(-frequency, kind="stable") if kind.order == "frequency" else np.arange(len(frequency))
        return total + sum(error(rebuilt(active, weights, order[:m])) for m in kind.inner_widths(len(frequency)))
    return total
