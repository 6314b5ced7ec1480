import numpy as np
import pytest

from heedful.statistics.intervals import jackknife_interval, mean_intervals
from heedful.statistics.quantity import Quantity, mean_over_texts, ratio_of


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
