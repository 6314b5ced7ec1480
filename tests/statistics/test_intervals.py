from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from heedful.statistics.intervals import (
    FEWEST_TEXTS,
    NORMAL_97_5,
    mean_intervals,
    mean_of_draws,
    normal,
    student,
    student_97_5,
    wilson,
)

LAWS = {
    "normal": stats.norm(2.0, 3.0),
    "uniform": stats.uniform(),
    "beta(2, 5)": stats.beta(2, 5),
    "beta(5, 1)": stats.beta(5, 1),
    "exponential": stats.expon(),
    "log-normal, σ = 0.5": stats.lognorm(0.5),
    "log-normal, σ = 1": stats.lognorm(1.0),
}


@pytest.mark.parametrize("n_texts", [FEWEST_TEXTS, 8, 20, 200])
@pytest.mark.parametrize("law", LAWS)
def test_intervals_over_texts_cover_the_mean_in_92_to_98_percent_of_samples(law, n_texts):
    n_samples = 20_000 if n_texts < 100 else 4_000
    values = LAWS[law].rvs((n_samples, n_texts), random_state=np.random.default_rng(n_texts))
    low, high = mean_intervals(values)
    coverage = np.mean((low <= LAWS[law].mean()) & (LAWS[law].mean() <= high))
    # Three standard errors of the simulation, 0.2 to 0.4 percentage points each, are allowed on either side.
    slack = 3 * np.sqrt(0.05 * 0.95 / n_samples)
    assert 0.92 - slack < coverage < 0.98 + slack


@pytest.mark.parametrize("n_texts", [FEWEST_TEXTS, 8, 20, 200])
@pytest.mark.parametrize("centre", [0.0, 0.6, 1.5, 2.5])
def test_intervals_of_mean_correlations_cover_and_stay_within_their_range(centre, n_texts):
    rng = np.random.default_rng(n_texts)
    law = stats.norm(centre, 0.5)
    mean = law.expect(np.tanh)
    low, high = mean_intervals(np.tanh(law.rvs((8_000, n_texts), random_state=rng)), (-1.0, 1.0))
    assert low.min() >= -1
    assert high.max() <= 1
    assert 0.915 < np.mean((low <= mean) & (mean <= high)) < 0.985


@pytest.mark.parametrize("n_texts", range(FEWEST_TEXTS))
def test_there_is_no_interval_over_too_few_texts(n_texts):
    assert np.isnan(mean_intervals(np.random.default_rng(0).normal(size=(3, n_texts)))).all()


def test_missing_values_are_left_out_and_equal_values_have_no_interval():
    values = np.random.default_rng(0).gamma(2.0, size=(1, 9))
    padded = np.insert(values, [2, 5, 9], np.nan, axis=1)
    assert np.allclose(mean_intervals(padded), mean_intervals(values), rtol=1e-12)
    assert np.isnan(mean_intervals(np.full((1, 9), 0.1))).all()


def test_symmetric_values_have_student_s_interval_with_one_degree_of_freedom_less():
    values = np.array([[-3.0, -2.0, -1.0, 0.0, 0.0, 1.0, 2.0, 3.0]])
    low, high = mean_intervals(values)
    half_width = stats.t.ppf(0.975, 6) * stats.sem(values[0])
    assert (-low[0], high[0]) == pytest.approx((half_width, half_width), rel=1e-12)


def test_mirrored_values_have_the_mirrored_interval_and_reach_further_towards_the_long_tail():
    values = np.random.default_rng(0).exponential(size=(50, 12))
    low, high = mean_intervals(values)
    assert np.allclose(mean_intervals(-values), (-high, -low), rtol=1e-12)
    assert np.median((high - values.mean(axis=1)) / (values.mean(axis=1) - low)) > 1.2


@pytest.mark.parametrize("freedom", [1.0, 2.0, 2.67, 4.0, 10.0, 100.0, 1e6])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.975, 0.999999])
def test_the_quantiles_are_those_of_scipy_stats(share, freedom):
    assert student(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-9, abs=1e-12)
    assert student_97_5(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)
    assert normal(share) == pytest.approx(stats.norm.ppf(share), rel=1e-9, abs=1e-12)
    assert pytest.approx(1.959963984540054, rel=1e-12) == NORMAL_97_5


@pytest.mark.parametrize("n_draws", [2, 3, 30])
def test_the_interval_of_draws_is_the_t_interval_of_scipy(n_draws):
    draws = np.random.default_rng(0).normal(size=(n_draws, 4))
    mean, half_width = mean_of_draws(draws)
    low, high = stats.t.interval(0.95, n_draws - 1, loc=draws.mean(axis=0), scale=stats.sem(draws, axis=0))
    assert np.allclose(mean - half_width, low, rtol=1e-10)
    assert np.allclose(mean + half_width, high, rtol=1e-10)


@pytest.mark.parametrize(("count", "n", "level"), [(3, 10, 0.95), (0, 20, 0.95), (20, 20, 0.99), (499, 1000, 0.9999)])
def test_the_ends_of_wilson_s_interval_are_z_standard_errors_away_by_their_own_variance(count, n, level):
    z = NormalDist().inv_cdf((1 + level) / 2)
    for end in wilson(count, n, level):
        assert (count / n - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / n, abs=1e-12)


def test_wilson_s_interval_contains_the_share_and_stays_a_probability():
    assert wilson(0, 5)[0] == 0
    assert wilson(5, 5)[1] == 1
    low, high = wilson(2, 9)
    assert 0 < low < 2 / 9 < high < 1
