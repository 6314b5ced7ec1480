import numpy as np
import pytest
from scipy import stats

from heedful.statistics.intervals import jackknife_interval, mean_intervals
from heedful.statistics.quantity import (
    Quantity,
    difference_of,
    is_above,
    is_below,
    mean_over_texts,
    mean_quantity,
    over_both,
    over_seeds,
    ratio_of,
)


def test_a_mean_has_the_interval_of_means_within_its_bounds():
    values = np.array([0.0, 1.0, 0.5, 0.2, 0.9, 1.0])
    low, high = mean_intervals(values[None], (0.0, 1.0))
    assert tuple(mean_over_texts(values, (0.0, 1.0))) == pytest.approx((0.6, low[0], high[0]))
    assert str(mean_over_texts(np.zeros(0))) == "unknown"


def test_equal_values_have_no_interval():
    same = mean_over_texts(np.zeros(5))
    assert f"{same:+.3f}" == "+0.000"
    assert same.plain() == [0.0, None, None]


def test_a_ratio_of_sums_has_the_jackknife_s_interval():
    totals, sizes = np.array([1.0, 2.0, 4.0, 3.0, 5.0]), np.array([2.0, 3.0, 4.0, 5.0, 6.0])
    without = [(15 - total) / (20 - size) for total, size in zip(totals, sizes, strict=True)]
    assert tuple(ratio_of(totals, sizes)) == pytest.approx((0.75, *jackknife_interval(0.75, np.array(without))))
    assert str(ratio_of(totals, np.zeros(5))) == "unknown"


def test_every_number_is_printed_in_one_style():
    assert str(Quantity(0.123456, 0.1, 0.2)) == "0.1235 [0.1, 0.2]"
    assert f"{Quantity(0.5, 0.25, 0.75):+.2f}" == "+0.50 [+0.25, +0.75]"


def test_a_mean_leaves_out_texts_without_a_value():
    values = np.array([0.2, np.nan, 0.5, 0.1, 0.9, 0.4, np.nan])
    assert mean_quantity(values) == mean_over_texts(values[~np.isnan(values)], (0.0, 1.0))
    assert np.isnan(mean_quantity(np.full(3, np.nan)).value)


@pytest.mark.parametrize("n", [1, 4, 20, 200])
def test_of_equal_values_the_interval_is_that_of_a_proportion(n):
    none, all_ = mean_quantity(np.zeros(n)), mean_quantity(np.ones(n))
    exact = stats.binomtest(0, n).proportion_ci(method="exact")
    assert (none.low, none.high) == pytest.approx((exact.low, exact.high))
    assert (all_.low, all_.high) == pytest.approx((1 - exact.high, 1))
    wide = mean_quantity(np.zeros(n), (-1.0, 1.0))
    assert (wide.low, wide.high) == pytest.approx((-exact.high, exact.high))


def test_of_few_different_values_nothing_is_known():
    assert mean_quantity(np.array([0.25, 0.75])) == Quantity(0.5, 0.0, 1.0)


def test_differences_are_paired_and_compared_with_bounds():
    one, other = np.array([0.5, np.nan, 0.25] * 5), np.array([0.25, 1.0, 0.5] * 5)
    assert difference_of(one, other).value == pytest.approx(0)
    mean = Quantity(0.5, 0.4, 0.6)
    assert is_above(mean, 0.39)
    assert not is_above(mean, 0.4)
    assert is_below(mean, 0.61)
    assert not is_below(mean, 0.6)
    assert not is_above(Quantity(0.5))
    assert not is_below(Quantity(0.5))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_intervals_of_few_seeds_are_student_s_and_stay_shares(n):
    draws = np.random.default_rng(n).normal(0.5, 1e-3, size=n)
    ends = stats.t.interval(0.95, n - 1, draws.mean(), stats.sem(draws))
    assert over_seeds(draws, (0.0, 1.0)) == pytest.approx((draws.mean(), *ends))
    assert over_seeds(np.array([0.999, *[0.9] * (n - 1)]), (0.0, 1.0)).high <= 1
    assert np.isnan(over_seeds(np.full(n, 0.25), (0.0, 1.0)).low)


def test_intervals_add_those_over_texts_and_over_fits():
    rng = np.random.default_rng(0)
    values = rng.uniform(0.3, 0.7, 80) + np.array([[0.0], [0.02], [0.05]])
    joined = over_both(values, (0.0, 1.0))
    alike = over_both(np.tile(values.mean(axis=0), (3, 1)), (0.0, 1.0))
    # Student's quantile with two degrees of freedom is 4.3027.
    half = 4.3027 * values.mean(axis=1).std(ddof=1) / np.sqrt(3)
    assert joined.value - joined.low == pytest.approx(np.hypot(alike.value - alike.low, half), rel=1e-4)
    assert joined.high - joined.value == pytest.approx(np.hypot(alike.high - alike.value, half), rel=1e-4)
    assert joined.value == pytest.approx(values.mean())
