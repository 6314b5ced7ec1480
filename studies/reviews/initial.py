"""The weights with which the training of the model "reviews" begins."""

import torch

from heedful.models.encoder.network import EncoderConfig, EncoderNetwork
from heedful.models.network import positional_table


def initial_encoder(config: EncoderConfig, n_pieces: int, seed: int) -> EncoderNetwork:
    """Initial weights: N(0, 0.04²) for word vectors, N(0, 1/(3 · inputs)) for matrices, zero biases.

    Positions begin as sines and cosines. Matrices whose output is added to x are divided by √(2 · depth), as in GPT-2.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.device("meta"):
        network = EncoderNetwork(config, n_pieces)
    network.to_empty(device="cpu")
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.dim() > 1:
                size = 0.04 if name == "W_e" else (3 * weight.shape[1]) ** -0.5
                size /= (2 * config.depth) ** 0.5 if name.endswith(("o_proj.weight", "down.weight")) else 1
                weight.normal_(0, size, generator=generator)
            else:
                weight.fill_(float("norm" in name and name.endswith("weight")))
        network.W_p.copy_(0.056 * positional_table("authors", config.T_max, config.d_e))
    return network
