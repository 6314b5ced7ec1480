"""The linear maps of an attention module, head by head, read and written in one form for every architecture."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.errors import Unsupported

_NAMES = (
    ("q_proj", "k_proj", "v_proj", "o_proj"),
    ("q_proj", "k_proj", "v_proj", "out_proj"),
    ("q_lin", "k_lin", "v_lin", "out_lin"),
    ("q", "k", "v", "o"),
    ("query", "key", "value", "dense"),
    ("self.query", "self.key", "self.value", "output.dense"),
    ("attention.query", "attention.key", "attention.value", "output.dense"),
)
"""The projections of queries, keys, values and outputs by the names that Hugging Face's attention modules use."""


@final
@dataclass(frozen=True)
class HeadWeights:
    """Weights and biases of queries, keys and values, each (head, d, …), and the output projection.

    There may be several queries' heads for each head of keys and values, in order.
    """

    W: tuple[Float[Tensor, "_ _ _"], Float[Tensor, "_ _ _"], Float[Tensor, "_ _ _"]]
    b: tuple[Float[Tensor, "_ _"], Float[Tensor, "_ _"], Float[Tensor, "_ _"]]
    W_o: Float[Tensor, "head d_out d_e"]
    b_o: Float[Tensor, "d_e"]

    @property
    def group(self) -> int:
        """How many heads of queries share one head of keys and values."""
        return len(self.W[0]) // len(self.W[2])

    def taken(self, order: Tensor) -> "HeadWeights":
        """The heads of keys and values in that order, each with its queries' heads."""
        of_queries = (order[:, None] * self.group + torch.arange(self.group, device=order.device)).flatten()
        orders = of_queries, order, order
        W, b = (tuple(x[o] for x, o in zip(part, orders, strict=True)) for part in (self.W, self.b))
        return HeadWeights(W, b, self.W_o[of_queries], self.b_o)  # type: ignore[arg-type]


Place = tuple[HeadWeights, Callable[[HeadWeights], None]]
"""The heads of an attention module, and how to write others in their place."""


def heads_of(network: nn.Module, widths: dict[nn.Module, int]) -> Iterator[Place]:
    """The heads of every attention module of a network; `widths` has the size of a head of each."""
    for module in network.modules():
        if isinstance(module, nn.MultiheadAttention):
            yield _of_torch(module)
            continue
        children = dict(module.named_modules())
        width = next((widths[part] for part in children.values() if part in widths), None)
        if width is not None and "c_attn" in children and "c_proj" in children and module in widths:
            yield _of_gpt2(module, width)
        elif width is not None and (parts := _named(children)):
            yield _of_linears(parts, width)


def _named(children: dict[str, nn.Module]) -> tuple[nn.Linear, ...] | None:
    for names in _NAMES:
        parts = tuple(part for name in names if isinstance(part := children.get(name), nn.Linear))
        if len(parts) == len(names):
            return parts
    return None


def _of_linears(parts: tuple[nn.Linear, ...], width: int) -> Place:
    *inputs, join = parts
    W = [part.weight.detach().unflatten(0, (-1, width)) for part in inputs]
    b = [_bias(part).unflatten(0, (-1, width)) for part in inputs]
    heads = HeadWeights(tuple(W), tuple(b), join.weight.detach().T.unflatten(0, (-1, width)), _bias(join))  # type: ignore[arg-type]

    def write(new: HeadWeights) -> None:
        for part, weight, bias in zip(inputs, new.W, new.b, strict=True):
            _put(part, weight.flatten(0, 1), bias.flatten())
        _put(join, new.W_o.flatten(0, 1).T, new.b_o)

    return heads, write


def _of_gpt2(module: Any, width: int) -> Place:
    """GPT-2 stores its linear maps transposed, and one of them computes queries, keys and values."""
    three, join = module.c_attn, module.c_proj
    if three.weight.shape[1] != 3 * three.weight.shape[0]:
        raise Unsupported("Cross-attention of GPT-2 has other maps.")
    W = tuple(part.T.unflatten(0, (-1, width)) for part in three.weight.detach().chunk(3, dim=1))
    b = tuple(part.unflatten(0, (-1, width)) for part in three.bias.detach().chunk(3))
    heads = HeadWeights(W, b, join.weight.detach().unflatten(0, (-1, width)), join.bias.detach())  # type: ignore[arg-type]

    def write(new: HeadWeights) -> None:
        _put(three, torch.cat([weight.flatten(0, 1) for weight in new.W]).T, torch.cat(new.b).flatten())
        _put(join, new.W_o.flatten(0, 1), new.b_o)
        three.nf, module.split_size = three.weight.shape[1], three.weight.shape[1] // 3

    return heads, write


def _of_torch(module: nn.MultiheadAttention) -> Place:
    joint = module.in_proj_weight is not None
    separate: Any = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    weights = module.in_proj_weight.detach().chunk(3) if joint else tuple(weight.detach() for weight in separate)
    flat = (
        module.in_proj_bias.detach() if module.in_proj_bias is not None else weights[0].new_zeros(3 * len(weights[0]))
    )
    W, b = (tuple(part.unflatten(0, (module.num_heads, -1)) for part in parts) for parts in (weights, flat.chunk(3)))
    join = module.out_proj
    heads = HeadWeights(W, b, join.weight.detach().T.unflatten(0, (module.num_heads, -1)), _bias(join))  # type: ignore[arg-type]

    def write(new: HeadWeights) -> None:
        if len(new.W[0]) != module.num_heads:
            raise Unsupported("nn.MultiheadAttention has one size for its heads together and its input.")
        rows = [weight.flatten(0, 1) for weight in new.W]
        trains = join.weight.requires_grad
        if joint:
            module.in_proj_weight = nn.Parameter(torch.cat(rows), trains)
        else:
            module.q_proj_weight, module.k_proj_weight, module.v_proj_weight = (nn.Parameter(x, trains) for x in rows)
        module.in_proj_bias = nn.Parameter(torch.cat(new.b).flatten(), trains)
        _put(join, new.W_o.flatten(0, 1).T, new.b_o)

    return heads, write


def _bias(part: nn.Linear) -> Tensor:
    return part.weight.new_zeros(len(part.weight)) if part.bias is None else part.bias.detach()


def _put(part: Any, weight: Tensor, bias: Tensor) -> None:
    trains = part.weight.requires_grad
    part.weight, part.bias = nn.Parameter(weight.contiguous(), trains), nn.Parameter(bias.contiguous(), trains)
