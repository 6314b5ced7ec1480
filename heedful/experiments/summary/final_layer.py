"""The single layer without its final layer: folded into the values, left out, or with nothing to take its place."""

import torch
from einops import einsum

from heedful.models.network import Config, Network
from heedful.models.single_layer import SingleLayer
from heedful.models.transformer import Layer, TransformerConfig, TransformerNetwork
from heedful.models.vocabulary import SPECIAL_WORDS

_VOTE = 12.0
"""What a head's whole attention is worth to its class, in logits."""


def fold_final_layer(model: SingleLayer) -> SingleLayer:
    """The same function with W_ℓ = I: only the product W_ℓ W_v enters f, so the values can be W_ℓ v from the start."""
    old, c = model.network, model.network.config
    config = Config(c.n_heads, c.T_max, c.d_e, c.d_att, c.n_classes, c.n_classes, c.positional, c.bias)
    weights = {name: weight.detach() for name, weight in old.named_parameters()}
    W_l = weights["W_l"]
    weights["W_v"] = einsum(W_l, weights["W_v"], "head classes d_out, head d_out d_e -> head classes d_e")
    weights["b_v"] = einsum(W_l, weights["b_v"], "head classes d_out, head d_out -> head classes")
    weights["W_l"] = torch.eye(c.n_classes).to(W_l).expand(c.n_heads, -1, -1).contiguous()
    network = Network(config, weights).to(W_l.device)
    network.W_p.copy_(old.W_p)
    return SingleLayer(network, model.vocabulary, model.classes)


def hold_identity(network: TransformerNetwork) -> None:
    """W_ℓ stays the identity in every head: values are logits."""
    W_o = _only_layer(network).weights["W_o"]
    W_o.copy_(torch.eye(W_o.shape[1], device=W_o.device, dtype=W_o.dtype).expand_as(W_o))


def hold_equal_values(network: TransformerNetwork) -> None:
    """Every word has the same value, so that words differ in attention only: f_c = vote · Σ_t α_t over words t.

    Head c speaks for class c alone; [cls] and [unk], and so padding, have no voice. One coordinate of the word vectors
    stays 1 for words and 0 for those two, and W_v reads that alone: the coordinate in which the positions of the
    authors' table are nearest to 0 (below 0.03), which is all that is left of a difference.
    """
    config, w = network.config, _only_layer(network).weights
    _check(config)
    voice = config.d_e - 2
    network.W_e[:, voice] = 1.0
    network.W_e[: len(SPECIAL_WORDS), voice] = 0.0
    w["W_v"].zero_()
    w["b_v"].zero_()
    heads = torch.arange(config.n_heads, device=w["W_v"].device)
    w["W_v"][heads, heads, voice] = _VOTE * config.n_heads
    hold_identity(network)


def _check(config: TransformerConfig) -> None:
    if not config.n_heads == config.n_classes == config.d_out or config.positional != "authors":
        raise ValueError("Equal values need one head and one number a class, and the authors' positions.")


def _only_layer(network: TransformerNetwork) -> Layer:
    (layer,) = network.layers
    assert isinstance(layer, Layer)
    return layer
