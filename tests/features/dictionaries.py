"""Dictionaries that nobody trained."""

import torch
from torch.nn.functional import normalize

from heedful.features.autoencoder import Rule
from heedful.features.card import Card
from heedful.features.dictionary import Dictionary


def random_dictionary(width, d_e, seed=0, k=None, noise=0.0, card=None, scale=1.0):
    """A dictionary of random directions; `noise` turns each of them by that much, with a seed of its own."""
    rng = torch.Generator().manual_seed(0)
    W_dec = torch.randn(width, d_e, generator=rng) if noise else None
    other = torch.Generator().manual_seed(seed)
    drawn = torch.randn(width, d_e, generator=other)
    W_dec = normalize(drawn if W_dec is None else normalize(W_dec, dim=1) + noise * normalize(drawn, dim=1), dim=1)
    nothing = torch.zeros(width)
    return Dictionary(
        W_enc=scale * W_dec.clone(),
        b_enc=torch.full((width,), -0.1),
        W_dec=W_dec,
        b_dec=0.2 * torch.randn(d_e, generator=other),
        rule=Rule(torch.full((1, width), 0.3), k),
        card=card or Card("topk"),
        largest=nothing,
        density=nothing.clone(),
    )
