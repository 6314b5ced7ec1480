"""A constructed network that closes every bracket correctly although its second layer has uniform attention."""

import torch
from torch import Tensor

from heedful.errors import BadInput
from heedful.experiments.toy_tasks.dyck_network import DyckNetwork, DyckParts

UNIFORM = DyckParts(projection=False, norm=False, positions=False, first_layer=False, content=False)
"""The required parts: the minimal first layer, uniform attention, the residual and the feed-forward layers."""

_APART = 10.0
_AHEAD = 100.0


def constructed_weights(network: DyckNetwork) -> dict[str, Tensor]:
    """Weights with which uniform attention pools the whole stack; the balance condition is Wen et al.'s.

    Each type and depth has a coordinate, to which an opening bracket adds +1 and a closing one −1, so closed brackets
    cancel and the mean is 1/n for each open bracket. A hidden unit for each type and depth passes its coordinate on if
    that is the current depth. The last token determines the current depth: that of an opening bracket, or one less than
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
