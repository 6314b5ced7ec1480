import numpy as np
from scipy import stats

from heedful.statistics.correlation import ranks
from heedful.statistics.ties import settled


def test_scores_up_to_the_floor_are_zero_and_the_others_stay():
    scores = np.array([1e-17, -3e-7, 0.5, -2.0, 1e-5])
    assert settled(scores, 1e-6).tolist() == [0.0, 0.0, 0.5, -2.0, 1e-5]


def test_scores_that_differ_in_their_last_bit_are_ties():
    scores = np.array([0.3, 0.1 + 0.2, 0.7, 0.30000001])
    assert ranks(settled(scores)).tolist() == [0.5, 0.5, 3.0, 2.0]


def test_ranks_of_different_scores_are_unchanged():
    scores = np.random.default_rng(0).normal(size=200)
    assert np.array_equal(stats.rankdata(settled(scores)), stats.rankdata(scores))


def test_no_scores_and_equal_scores_are_left_alone():
    assert settled(np.array([])).tolist() == []
    assert settled(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
