"""Edited attention, for counterfactual questions: would the output be the same?

`model.edited(documents, uniform)` gives the logits under uniform attention in every layer. An edit is a function of the
layer's number, counted from 0 in the order in which layers are run, and of its maps; it has no state.
Reference: Jain & Wallace, *Attention is not Explanation*, 2019, arXiv:1902.10186, who permute the weights; Wiegreffe &
Pinter, 2019, arXiv:1908.04626, who make them uniform.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput
from heedful.models.recording import Edit

_ODD = (-7046029254386353131, -4658895280553007687, -7723592293110705685, 7046029254386353087)


def uniform(_layer: int, maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    """Equal attention to every key that a query can see."""
    seen = (maps > 0).to(maps)
    return seen / seen.sum(dim=-1, keepdim=True).clamp(min=1)


def nothing(_layer: int, maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    """No attention at all: the heads add nothing (Michel et al., 2019, arXiv:1905.10650)."""
    return torch.zeros_like(maps)


def erased(tokens: Sequence[int]) -> Edit:
    """No attention to these tokens, the rest scaled up to the same sum (Serrano & Smith, 2019, arXiv:1906.03731).

    A query that attends to nothing else keeps its weights.
    """

    def edit(_layer: int, maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
        if not tokens or not all(0 <= token < maps.shape[-1] for token in tokens):
            raise BadInput(f"Tokens are numbers from 0 to {maps.shape[-1] - 1}; {list(tokens)} was given.")
        left = maps.clone()
        left[..., list(tokens)] = 0.0
        sums = left.sum(dim=-1, keepdim=True)
        scaled = left / sums.clamp(min=1e-300 if maps.dtype == torch.float64 else 1e-30)
        return torch.where(sums > 0, scaled * maps.sum(dim=-1, keepdim=True), maps)

    return edit


def permuted(seed: int = 0) -> Edit:
    """Each query's weights, permuted at random over the keys it can see, differently for every layer and head.

    The permutation depends only on the seed and the positions, so a text has the same one in any batch.
    """

    def edit(layer: int, maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
        seen = maps > 0
        # Hidden keys come last in both orders, so each seen key is dealt the weight of a seen key.
        order = _drawn(seed, layer, maps).masked_fill(~seen, 2.0).argsort(dim=-1)
        weights = maps.gather(-1, torch.where(seen, 0.0, 1.0).argsort(dim=-1, stable=True))
        return torch.zeros_like(maps).scatter(-1, order, weights)

    return edit


def given(maps: Sequence[Tensor]) -> Edit:
    """These maps (batch, head, query, key), one for each layer in the order in which the layers are run."""

    def edit(layer: int, own: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
        if layer >= len(maps):
            raise BadInput(f"{len(maps)} maps were given, but the model has more attention layers; give one per layer.")
        if maps[layer].shape != own.shape:
            raise BadInput(f"A layer's maps have the shape {tuple(own.shape)}; {tuple(maps[layer].shape)} was given.")
        return maps[layer].to(own)

    return edit


def only(edit: Edit, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None) -> Edit:
    """The edit in some layers or heads alone, counted from 0."""

    def some(layer: int, maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
        if layers is not None and layer not in layers:
            return maps
        new = edit(layer, maps)
        if heads is None:
            return new
        chosen = torch.zeros(maps.shape[1], dtype=torch.bool, device=maps.device)
        chosen[list(heads)] = True
        return torch.where(chosen[:, None, None], new, maps)

    return some


def _drawn(seed: int, layer: int, maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    """Pseudo-random numbers in [0, 1) from a hash of the position (splitmix64, Steele, Lea & Flood); no state."""
    sizes = maps.shape[1:]
    axes = torch.meshgrid(*(torch.arange(size) for size in sizes), indexing="ij")
    # Products wrap around, as hashing wants.
    mixed = torch.full(sizes, layer) + torch.tensor(seed) * _ODD[3]
    for axis, odd in zip(axes, _ODD, strict=False):
        mixed = (mixed ^ axis) * odd
        mixed = mixed ^ (mixed >> 29)
    return ((mixed & (2**52 - 1)).double() / 2**52).to(maps.device).expand_as(maps)
