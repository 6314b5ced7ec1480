from itertools import product

import numpy as np
import pytest
from scipy import stats

from heedful.evaluation.significance import holm, intervals, means, sign_flips


def test_means_leave_out_what_is_not_there():
    values = np.array([[1.0, 2.0, np.nan], [np.nan, np.nan, np.nan]])
    found = means(values)
    assert found[0] == 1.5
    assert np.isnan(found[1])


def test_bootstrap_intervals_are_those_of_scipy():
    values = np.random.default_rng(0).gamma(2.0, size=(3, 80))
    low, high = intervals(values, 0)
    for row, (a, b) in enumerate(zip(low, high, strict=True)):
        theirs = stats.bootstrap((values[row],), np.mean, method="percentile", n_resamples=20_000, rng=1)
        wanted = theirs.confidence_interval
        width = wanted.high - wanted.low
        assert abs(a - wanted.low) < 0.06 * width
        assert abs(b - wanted.high) < 0.06 * width


def test_intervals_cover_the_mean_about_as_often_as_they_say():
    chance = np.random.default_rng(0)
    covered = 0
    for trial in range(100):
        low, high = intervals(chance.normal(1.0, size=(1, 60)), trial)
        covered += bool(low[0] <= 1.0 <= high[0])
    assert 0.88 <= covered / 100 <= 0.99


def test_an_interval_of_nothing_is_nothing():
    low, high = intervals(np.array([[np.nan, np.nan], [1.0, 1.0], [1.0, np.nan]]), 0)
    assert np.isnan(low[[0, 2]]).all()
    assert (low[1], high[1]) == (1.0, 1.0)


def test_flipped_signs_give_the_p_value_of_all_flips():
    differences = np.random.default_rng(0).normal(0.4, size=(1, 10))
    all_flips = np.array(list(product([-1, 1], repeat=10))) @ differences[0]
    exact = np.mean(np.abs(all_flips) >= abs(differences.sum()) - 1e-12)
    assert sign_flips(differences, 0)[0] == pytest.approx(exact, abs=0.006)


def test_no_difference_is_never_told():
    assert np.array_equal(sign_flips(np.zeros((2, 20)), 0), [1.0, 1.0])


def test_p_values_under_chance_are_below_five_percent_as_seldom_as_they_say():
    p = sign_flips(np.random.default_rng(0).normal(size=(400, 40)), 0)
    assert 0.02 <= np.mean(p < 0.05) <= 0.09


def test_holm_is_stepped_bonferroni():
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.5, 0.9])).tolist() == pytest.approx([1.0, 1.0])
    assert holm(np.array([0.9, 0.001])).tolist() == pytest.approx([0.9, 0.002])
