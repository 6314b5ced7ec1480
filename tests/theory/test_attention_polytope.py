from itertools import combinations
from math import inf, log

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import jensenshannon

from heedful.theory.attention_polytope import TIE, smallest_flip, strongest_adversary


def divergence(one, other):
    return jensenshannon(one, other, axis=-1) ** 2


def game(seed, n=None):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12)) if n is None else n
    alpha, g = rng.dirichlet(np.full(n, 0.7)), 2 * rng.normal(size=n)
    middle, width = float(alpha @ g), float(rng.uniform(0.01, 0.5))
    return rng, alpha, g, middle - width, middle + width * rng.uniform(0, 1)


def feasible(rng, alpha, g, low, high, n):
    """Random attention with an output within the bounds: as far from alpha, in a random direction, as they allow."""
    ends = rng.dirichlet(np.full(len(alpha), 0.3), size=n)
    slope, middle = ends @ g - alpha @ g, alpha @ g
    room = np.where(slope > 0, high - middle, low - middle)
    way = np.minimum(1, room / np.where(slope == 0, 1e-300, slope))
    return alpha + way[:, None] * (ends - alpha)


@pytest.mark.parametrize("seed", range(20))
def test_no_allowed_attention_is_farther_than_the_strongest_adversary(seed):
    rng, alpha, g, low, high = game(seed)
    best, vertex = strongest_adversary(alpha, g, low, high)
    assert best == pytest.approx(divergence(alpha, vertex), abs=1e-12)
    assert vertex.sum() == pytest.approx(1)
    assert (vertex >= 0).all()
    assert (vertex > 0).sum() <= 2
    assert low - 1e-12 <= vertex @ g <= high + 1e-12
    points = feasible(rng, alpha, g, low, high, 4_000)
    assert ((points @ g >= low - 1e-9) & (points @ g <= high + 1e-9)).all()
    assert divergence(points, alpha).max() <= best + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_no_ascent_reaches_more(seed):
    rng, alpha, g, low, high = game(seed, n=5)
    best, _ = strongest_adversary(alpha, g, low, high)
    bounds = [{"type": "eq", "fun": lambda x: x.sum() - 1}, {"type": "ineq", "fun": lambda x: x @ g - low}]
    bounds.append({"type": "ineq", "fun": lambda x: high - x @ g})
    reached = []
    for start in feasible(rng, alpha, g, low, high, 12):
        end = minimize(
            lambda x: -divergence(np.clip(x, 1e-12, 1), alpha), start, bounds=[(1e-9, 1)] * 5, constraints=bounds
        )
        reached.append(-end.fun if end.success and low - 1e-7 <= end.x @ g <= high + 1e-7 else 0.0)
    assert 0.8 * best <= max(reached) <= best + 1e-6


def test_of_three_tokens_a_fine_grid_finds_the_same():
    steps = np.linspace(0, 1, 401)
    grid = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-12]).clip(0)
    for seed in range(5):
        _, alpha, g, low, high = game(seed, n=3)
        allowed = grid[(grid @ g >= low) & (grid @ g <= high)]
        assert strongest_adversary(alpha, g, low, high)[0] == pytest.approx(divergence(allowed, alpha).max(), abs=0.01)


def test_edges_of_the_strongest_adversary():
    one, vertex = strongest_adversary(np.ones(1), np.array([3.0]), 2.9, 3.1)
    assert one == 0
    assert vertex.tolist() == [1]
    alpha = np.array([0.5, 0.2, 0.3])
    alone = divergence(np.eye(3), alpha).max()
    for g, low, high in [(np.full(3, 0.1), 0.05, 0.15), (np.array([1.0, -2.0, 5.0]), -inf, inf)]:
        best, vertex = strongest_adversary(alpha, g, low, high)
        assert best == pytest.approx(alone)
        assert vertex.tolist() == [0, 1, 0]
    unseen = np.array([1.0, 0.0])
    best, vertex = strongest_adversary(unseen, np.array([0.0, 0.01]), -0.1, 0.1)
    assert best == pytest.approx(log(2))
    assert vertex.tolist() == [0, 1]
    best, vertex = strongest_adversary(np.array([0.5, 0.5]), np.array([0.0, 4.0]), 2.0, 2.0)
    assert best == 0
    assert vertex == pytest.approx([0.5, 0.5])


def brute_force(alpha, margins, erasable):
    """The least size of a set whose erasure turns a margin of what is left negative; None if there is none."""
    places = np.flatnonzero(erasable)
    for size in range(1, len(places) + 1):
        for some in combinations(places, size):
            kept = np.delete(np.arange(len(alpha)), some)
            if alpha[kept].sum() > 0 and (margins[:, kept] @ (alpha[kept] / alpha[kept].sum())).min() < 0:
                return size
    return None


@pytest.mark.parametrize("n_rivals", [1, 2, 4])
def test_the_smallest_set_that_flips_is_that_of_all_subsets(n_rivals):
    sizes = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 10))
        alpha, margins = rng.dirichlet(np.ones(n)), rng.normal(size=(n_rivals, n))
        margins += (0.1 - (margins @ alpha).min(keepdims=True)).clip(0) * rng.integers(1, 4)
        erasable = rng.random(n) < 0.8
        smallest, least = smallest_flip(alpha, margins, erasable), brute_force(alpha, margins, erasable)
        sizes.append(least)
        assert (smallest is None) == (least is None)
        if smallest is not None:
            assert len(smallest) == least
            assert erasable[smallest].all()
            assert (np.diff(smallest) > 0).all()
            kept = np.delete(np.arange(n), smallest)
            assert (margins[:, kept] @ alpha[kept]).min() < 0
    assert None in sizes
    assert len({*sizes}) > 2


def test_edges_of_the_smallest_flip():
    everything = np.ones(3, dtype=bool)
    alpha = np.array([0.5, 0.3, 0.2])
    assert smallest_flip(alpha, np.array([[1.0, 1.0, 1.0]]), everything) is None
    assert smallest_flip(np.ones(1), np.ones((1, 1)), np.ones(1, dtype=bool)) is None
    # What is left has margin 0: a tie, also when it is rounded to −1e-17.
    assert smallest_flip(alpha, np.array([[1.0, 0.0, 0.0]]), everything) is None
    assert smallest_flip(alpha, np.array([[1.0, 1e-17, -1e-17]]), everything) is None
    assert smallest_flip(alpha, np.array([[1.0, 0.0, -10 * TIE]]), everything) is not None
    # Without attention a token decides nothing, and if it alone is left there is no decision.
    assert smallest_flip(np.array([1.0, 0.0]), np.array([[1.0, -1.0]]), np.ones(2, dtype=bool)) is None
    smallest = smallest_flip(alpha, np.array([[1.0, 1.0, -1.0]]), np.array([False, True, True]))
    assert smallest is None
