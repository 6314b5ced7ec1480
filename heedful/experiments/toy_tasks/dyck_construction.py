"""A network that closes every bracket right though its second layer looks at all places alike; nothing is trained."""

import torch
from torch import Tensor

from heedful.errors import BadInput
from heedful.experiments.toy_tasks.dyck_network import DyckNetwork, DyckParts

UNIFORM = DyckParts(projection=False, norm=False, positions=False, first_layer=False, content=False)
"""The parts that it needs: the minimal first layer, uniform attention, the residual and the feed-forward layers."""

_APART = 10.0
_AHEAD = 100.0


def constructed_weights(network: DyckNetwork) -> dict[str, Tensor]:
    """Weights by which uniform attention pools the whole stack; the idea of balance is Wen et al.'s, the weights ours.

    An opening bracket of a type at a depth counts +1 in a coordinate of its own, the closing one −1, so what was closed
    cancels and the mean is 1/n for each bracket that is open. A hidden unit for each type and depth passes its
    coordinate on where this is the present depth, which the last token tells: that of an opening bracket, one less than
    that of a closing one.
    """
    k, m, d = network.language.n_types, network.language.depth, network.width
    first = 1 + 2 * k * m
    if d < first + k * m:
        raise BadInput(f"The construction needs a width of {first + k * m}; {d} was given.")
    weights = {name: torch.zeros_like(weight) for name, weight in network.initial(0).items()}
    weights["hidden_bias_2"][: k * m] = -_APART
    for level in range(m):
        for kind in range(k):
            unit = k * level + kind
            opening = 1 + 2 * k * level + kind
            weights["value_2"][opening, first + unit], weights["value_2"][opening + k, first + unit] = 1, -1
            weights["hidden_2"][first + unit, unit] = 1
            weights["back_2"][unit, first + unit] = _AHEAD
            weights["readout"][first + unit, k + kind] = 1
            for last in range(k):
                weights["hidden_2"][1 + 2 * k * level + last, unit] = _APART
                if level + 1 < m:
                    weights["hidden_2"][1 + 2 * k * (level + 1) + k + last, unit] = _APART
    return weights
