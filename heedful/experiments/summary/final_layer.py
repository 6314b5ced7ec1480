"""The single layer without its final layer: folded into the values, fixed to the identity, or with equal values."""

from dataclasses import replace

import torch
from einops import einsum

from heedful.models.network import Network
from heedful.models.single_layer import SingleLayer
from heedful.models.transformer import Layer, TransformerConfig, TransformerNetwork
from heedful.models.vocabulary import SPECIAL_WORDS

_VOTE = 12.0
"""The logit that a head adds to its class if all of its attention is on words."""


def fold_final_layer(model: SingleLayer) -> SingleLayer:
    """The same function with W_ℓ = I: f depends only on the product W_ℓ W_v, so W_ℓ can be folded into the values."""
    old, c = model.network, model.network.config
    config = replace(c, d_out=c.n_classes)
    weights = {name: weight.detach() for name, weight in old.named_parameters()}
    W_l = weights["W_l"]
    weights["W_v"] = einsum(W_l, weights["W_v"], "head classes d_out, head d_out d_e -> head classes d_e")
    weights["b_v"] = einsum(W_l, weights["b_v"], "head classes d_out, head d_out -> head classes")
    weights["W_l"] = torch.eye(c.n_classes).to(W_l).expand(c.n_heads, -1, -1).contiguous()
    network = Network(config, weights).to(W_l.device)
    network.W_p.data.copy_(old.W_p)
    return SingleLayer(network, model.vocabulary, model.classes)


def hold_identity(network: TransformerNetwork) -> None:
    """Keeps W_ℓ at the identity in every head, so that values are logits."""
    W_o = _only_layer(network).weights["W_o"]
    W_o.copy_(torch.eye(W_o.shape[1], device=W_o.device, dtype=W_o.dtype).expand_as(W_o))


def hold_equal_values(network: TransformerNetwork) -> None:
    """Keeps the values of all words equal, so that words differ only in attention: f_c = vote · Σ_t α_t over words t.

    Head c contributes to class c alone; [cls] and [unk], and so padding, contribute nothing. One coordinate of the word
    vectors is fixed to 1 for words and 0 for these two, and W_v reads only this coordinate. It is the one in which the
    positions of the authors' table are closest to 0 (below 0.03), which is the only remaining difference between words.
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
        raise ValueError('Equal values need one head and one value dimension per class, and positional="authors".')


def _only_layer(network: TransformerNetwork) -> Layer:
    (layer,) = network.layers
    assert isinstance(layer, Layer)
    return layer
