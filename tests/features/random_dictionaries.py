"""Dictionaries that nobody trained, for layers of tiny models."""

import torch

from heedful.features.autoencoder import Rule
from heedful.features.card import Card
from heedful.features.dictionary import Dictionary


def random_dictionary(model, layer=1, width=12, part="residual", k=None, seed=0, bind=True):
    """About half of the features are active in a row, or k."""
    rng = torch.Generator().manual_seed(seed)
    d_e = next(w.shape[-1] for name, w in model.network.named_parameters() if w.dim() == 2)
    W_dec = torch.nn.functional.normalize(torch.randn(width, d_e, generator=rng), dim=1)
    W_enc = W_dec + 0.3 * torch.randn(width, d_e, generator=rng)
    return Dictionary(
        W_enc=W_enc,
        b_enc=0.2 * torch.randn(width, generator=rng),
        W_dec=W_dec,
        b_dec=0.1 * torch.randn(d_e, generator=rng),
        rule=Rule(torch.zeros(1, width), k),
        card=Card("batchtopk", model=model.fingerprint, part=part, layer=layer),
        largest=1 + torch.arange(width) / 4,
        density=torch.linspace(0.05, 0.9, width),
        model=model if bind else None,
    )
