"""Hadamard matrices: columns of signs that are orthogonal to each other.

Orders are 2ᵏ (Sylvester, 1867), q + 1 for a prime q of the form 4i + 3 (Paley, 1933, first construction), and a power
of 2 times the latter, by Kronecker products. Only the requested columns are computed.
"""

from itertools import count
from math import isqrt

import numpy as np
from jaxtyping import Int, Int8


def largest_order(limit: int) -> int:
    """The largest of these orders that is at most `limit`, which is at least 1."""
    return max(_base(limit >> doublings) << doublings for doublings in range(limit.bit_length()))


def smallest_order(least: int) -> int:
    """The smallest of these orders that is at least `least`."""
    return next(order for order in count(least) if largest_order(order) == order)


def hadamard_columns(order: int, chosen: Int[np.ndarray, "column"]) -> Int8[np.ndarray, "row column"]:
    """The chosen columns of H = S ⊗ P, S Sylvester's matrix and P Paley's: entries ±1, H Hᵀ = n I.

    P is as large as possible. An effect is then aliased with many interactions a little, so its error is nearly normal;
    with Sylvester's matrix alone it would be aliased with few interactions entirely.
    """
    doublings = next(k for k in range(order.bit_length()) if _base(order >> k) << k == order)
    block, place = np.divmod(chosen, order >> doublings)
    common = np.arange(1 << doublings)[:, None] & block
    signs = 1 - 2 * (np.bitwise_count(common) % 2).astype(np.int8)
    return (signs[:, None] * _paley(order >> doublings, place)).reshape(order, len(chosen))


def _base(limit: int) -> int:
    """The largest order of Paley's first construction that is at most `limit`; 1 or 2 if there is none."""
    orders = range(limit - limit % 4, 0, -4)
    return next((order for order in orders if _is_prime(order - 1)), min(limit, 2))


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def _paley(order: int, chosen: Int[np.ndarray, "column"]) -> Int8[np.ndarray, "row column"]:
    """I + [[0, 1ᵀ], [−1, Q]], Q_rc = χ(r − c): 1 for non-zero squares modulo q, −1 for all others but 0."""
    if order <= 2:
        return (1 - 2 * (np.arange(order)[:, None] & chosen)).astype(np.int8)
    q = order - 1
    character = np.full(q, -1, dtype=np.int8)
    character[np.arange(q) ** 2 % q] = 1
    character[0] = 0
    columns = np.ones((order, len(chosen)), dtype=np.int8)
    columns[1:] = np.where(chosen == 0, -1, character[(np.arange(q)[:, None] - (chosen - 1)) % q])
    columns[chosen, np.arange(len(chosen))] = 1
    return columns
