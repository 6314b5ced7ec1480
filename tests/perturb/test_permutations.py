"""Permutation sampling against Shapley values by brute force over all sets."""

from itertools import permutations, product

import numpy as np
import pytest

from heedful.perturb.permutations import Walks, mean_gain
from tests.theory.test_exact import brute_shapley


def curved(keep):
    """A function of masks that is not additive."""
    x = np.asarray(keep, dtype=float)
    return (x @ np.arange(1.0, 5.0) + 2) / (1 + x[:, 0] * x[:, 1] + x @ np.linspace(0.2, 1, 4))


ALL = np.array(list(product([0, 1], repeat=4)))
WHOLE, EMPTY = float(curved(ALL[-1:])[0]), float(curved(ALL[:1])[0])


def test_walks_are_stratified_and_come_with_their_reverse():
    walks = Walks.draw(7, 20, np.random.default_rng(0))
    assert (np.sort(walks.orders, axis=1) == np.arange(7)).all()
    assert (walks.orders[0::2] == walks.orders[1::2, ::-1]).all()
    assert (np.sort(np.floor(20 * walks.distances), axis=0) == np.arange(20)[:, None]).all()
    kept = walks.masks.reshape(40, 6, 7)
    assert (kept.sum(axis=2) == np.arange(1, 7)).all()
    assert (kept[:, 1:] >= kept[:, :-1]).all()


def test_gains_over_all_orders_are_the_shapley_values():
    forth = [order for order in permutations(range(4)) if order[0] < order[-1]]
    orders = np.array([way for order in forth for way in (order, order[::-1])])
    walks = Walks(orders, np.zeros((len(forth), 4)))
    gains = walks.gains(curved(walks.masks), WHOLE, EMPTY)
    assert np.allclose(gains.mean(axis=0), brute_shapley(ALL, curved(ALL)), atol=1e-12)
    assert np.allclose(gains.sum(axis=1), WHOLE - EMPTY, atol=1e-12)


def test_mean_gains_of_random_walks_cover_the_shapley_values():
    truth, inside = brute_shapley(ALL, curved(ALL)), []
    for seed in range(200):
        walks = Walks.draw(4, 25, np.random.default_rng(seed))
        values = curved(walks.masks)
        surrogate = mean_gain([(walks, walks.gains(values, WHOLE, EMPTY))], EMPTY, walks.masks, values)
        assert surrogate.coefficients.sum() == pytest.approx(WHOLE - EMPTY, abs=1e-12)
        inside.append(np.abs(surrogate.coefficients - truth) <= surrogate.half_widths)
    assert 0.92 <= np.mean(inside) <= 0.99
