from itertools import combinations
from math import comb

import numpy as np

from heedful.experiments.mathematics.subsets import all_kept, kept_of_size, lime_kept, lime_law


def test_every_set_is_there_once():
    keep = all_kept(5)
    assert {tuple(row) for row in keep.tolist()} == {
        tuple(unit not in gone for unit in range(5)) for s in range(6) for gone in combinations(range(5), s)
    }
    assert len(keep) == 32
    assert not keep[0].any()


def test_sizes_and_sets_of_one_size_are_equally_likely():
    keep = all_kept(6)
    law, gone = lime_law(keep), 6 - keep.sum(axis=1)
    for s in range(1, 7):
        assert np.allclose(law[gone == s], 1 / 6 / comb(6, s))
    assert law[gone == 0] == 0
    assert np.isclose(law.sum(), 1)


def test_draws_follow_the_law():
    n_draws = 40_000
    drawn = lime_kept(4, n_draws, np.random.default_rng(0))
    keep = all_kept(4)
    counts = np.array([(drawn == row).all(axis=1).mean() for row in keep])
    law = lime_law(keep)
    assert (np.abs(counts - law) <= 4.5 * np.sqrt(law / n_draws)).all()


def test_draws_of_one_size_have_it_and_the_same_seed_gives_the_same_sets():
    first, again = (kept_of_size(9, 4, 100, np.random.default_rng(3)) for _ in range(2))
    assert (first.sum(axis=1) == 5).all()
    assert (first == again).all()
    assert len({tuple(row) for row in first.tolist()}) > 30
