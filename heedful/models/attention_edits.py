"""Other attention in a model's place, for counterfactual questions: would it have answered the same?

`model.edited(documents, uniform)` gives the logits under uniform attention in every layer. Reference: Jain & Wallace,
*Attention is not Explanation*, 2019, arXiv:1902.10186, who permute the weights; Wiegreffe & Pinter, 2019,
arXiv:1908.04626, who make them uniform.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput
from heedful.models.attention_hook import Attended
from heedful.models.layered import Edit


def uniform(_call: Attended, maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    """Every key a query can see gets the same."""
    seen = (maps > 0).to(maps)
    return seen / seen.sum(dim=-1, keepdim=True)


def permuted(seed: int = 0) -> Edit:
    """Each query's weights are dealt out anew among the keys it can see, differently for every layer and head."""
    chance = torch.Generator().manual_seed(seed)

    def edit(_call: Attended, maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
        seen = maps > 0
        draw = torch.rand(maps.shape, generator=chance).to(maps.device)
        # Hidden keys come last in both orders, so each seen key is dealt the weight of a seen key.
        order = draw.masked_fill(~seen, 2.0).argsort(dim=-1)
        weights = maps.gather(-1, torch.where(seen, 0.0, 1.0).argsort(dim=-1, stable=True))
        return torch.zeros_like(maps).scatter(-1, order, weights)

    return edit


def given(maps: Sequence[Tensor]) -> Edit:
    """These maps (batch, head, query, key), one for each layer in the order in which the layers are run."""
    left = list(maps)

    def edit(_call: Attended, own: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
        if not left:
            raise BadInput(f"The model has more attention layers than the {len(maps)} maps that were given.")
        new = left.pop(0).to(own)
        if new.shape != own.shape:
            raise BadInput(f"A layer's maps have the shape {tuple(own.shape)}; {tuple(new.shape)} was given.")
        return new

    return edit


def only(edit: Edit, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None) -> Edit:
    """The edit in some layers or heads alone, counted from 0."""
    seen = 0

    def some(call: Attended, maps: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
        nonlocal seen
        layer, seen = seen, seen + 1
        new = edit(call, maps)
        if layers is not None and layer not in layers:
            return maps
        if heads is None:
            return new
        chosen = torch.zeros(maps.shape[1], dtype=torch.bool, device=maps.device)
        chosen[list(heads)] = True
        return torch.where(chosen[:, None, None], new, maps)

    return some
