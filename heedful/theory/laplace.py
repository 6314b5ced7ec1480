"""1/D as a sum of few exponentials: 1/D = ∫_0^∞ e^{−λD} dλ ≈ Σ_k w_k e^{−λ_k D}."""

from dataclasses import dataclass
from functools import cache
from math import ceil, inf, log, log2
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float
from safetensors.numpy import load_file

WIDEST = 1e30
"""Above this spread double precision has no digits left for some sets, and no bound is given."""


@final
@dataclass(frozen=True)
class ExponentialSum:
    """Nodes λ and weights w for D ∈ [1/spread, 1], and the largest relative error of 1/D there."""

    nodes: Float[np.ndarray, "node"]
    weights: Float[np.ndarray, "node"]
    bound: float


@cache
def exponential_sum(octave: int, tight: bool) -> ExponentialSum:
    """A sum for spreads of up to 2^octave, accurate to 1e-12 if `tight`, else to 1e-9 with about half as many nodes.

    The tight one is the double-exponential rule; the other comes from the table that tools/exponential_sums.py made,
    within the range of the table. The error is computed over the range of D, not estimated.
    """
    spread = 2.0**octave
    if not tight and str(octave) in _table():
        nodes, weights = _table()[str(octave)]
    else:
        nodes, weights = double_exponential(spread, 0.3 if tight else 0.38)
    return ExponentialSum(nodes, weights, largest_error(nodes, weights, spread) if spread < 2 * WIDEST else 1.0)


def octave_of(spread: float) -> int:
    """The k with spread ≤ 2^k."""
    return max(1, ceil(log2(min(spread, 2 * WIDEST)))) if spread < inf else ceil(log2(2 * WIDEST))


def double_exponential(spread: float, step: float) -> tuple[Float[np.ndarray, "node"], Float[np.ndarray, "node"]]:
    """λ = exp(v − e^{−v}) with the trapezoid rule in v, which converges exponentially over any range of D."""
    v = np.arange(-3.5, log(35 * spread) + step, step)
    nodes = np.exp(v - np.exp(-v))
    return nodes, (1 + np.exp(-v)) * nodes * step


def largest_error(nodes: Float[np.ndarray, "node"], weights: Float[np.ndarray, "node"], spread: float) -> float:
    """max |D Σ_k w_k e^{−λ_k D} − 1| on a grid of [1/spread, 1] much finer than the oscillations of the error."""
    D = np.exp(np.linspace(-log(spread), 0, 60 * len(nodes)))[:, None]
    return float(np.abs(D[:, 0] * (np.exp(-D * nodes) @ weights) - 1).max())


@cache
def _table() -> dict[str, np.ndarray]:
    return load_file(Path(__file__).parent / "exponential_sums.safetensors")
