from statistics import NormalDist

import pytest

from heedful.statistics.proportion import wilson


@pytest.mark.parametrize(("count", "n", "level"), [(3, 10, 0.95), (0, 20, 0.95), (20, 20, 0.99), (499, 1000, 0.9999)])
def test_the_ends_are_z_standard_errors_away_by_their_own_variance(count, n, level):
    z = NormalDist().inv_cdf((1 + level) / 2)
    for end in wilson(count, n, level):
        assert (count / n - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / n, abs=1e-12)


def test_the_interval_holds_the_share_and_stays_a_probability():
    assert wilson(0, 5)[0] == 0
    assert wilson(5, 5)[1] == 1
    low, high = wilson(2, 9)
    assert 0 < low < 2 / 9 < high < 1
