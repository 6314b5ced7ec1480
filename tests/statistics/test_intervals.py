from math import exp
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from heedful.statistics.intervals import (
    NORMAL_97_5,
    TEXTS_FOR_INTERVAL,
    correlation_interval,
    jackknife_interval,
    mean_intervals,
    mean_of_draws,
    normal,
    rank_correlation_interval,
    seed_intervals,
    student,
    student_97_5,
    wilson,
)

LAWS = {
    "normal": (lambda rng, size: rng.normal(2.0, 3.0, size), 2.0),
    "uniform": (lambda rng, size: rng.random(size), 0.5),
    "beta(2, 5)": (lambda rng, size: rng.beta(2, 5, size), 2 / 7),
    "beta(5, 1)": (lambda rng, size: rng.beta(5, 1, size), 5 / 6),
    "beta(½, 2)": (lambda rng, size: rng.beta(0.5, 2, size), 0.2),
    "beta(½, ½)": (lambda rng, size: rng.beta(0.5, 0.5, size), 0.5),
    "half zeros, half beta(2, 5)": (lambda rng, size: rng.beta(2, 5, size) * rng.integers(0, 2, size), 1 / 7),
    "shares of 5, p = 0.3": (lambda rng, size: rng.binomial(5, 0.3, size) / 5, 0.3),
    "exponential": (lambda rng, size: rng.exponential(size=size), 1.0),
    "log-normal, σ = 0.5": (lambda rng, size: rng.lognormal(0.0, 0.5, size), exp(0.125)),
    "log-normal, σ = 1": (lambda rng, size: rng.lognormal(0.0, 1.0, size), exp(0.5)),
}
TOO_WIDE = {
    ("beta(½, ½)", 8): 0.985,
    ("half zeros, half beta(2, 5)", 8): 0.984,
}
"""Coverage above 98 %: values at both ends of a bounded range and few between."""


def coverage(values, mean, bounds=(-np.inf, np.inf)):
    """The share of intervals that hold the mean, and its standard error, of the samples that have an interval."""
    low, high = mean_intervals(values, bounds)
    holds = ((low <= mean) & (mean <= high))[~np.isnan(low)]
    return holds.mean(), np.sqrt(0.08 * 0.92 / len(holds))


@pytest.mark.parametrize("n_texts", [TEXTS_FOR_INTERVAL, 8, 20, 200])
@pytest.mark.parametrize("law", LAWS)
def test_intervals_over_texts_cover_the_mean_in_92_to_98_percent_of_samples(law, n_texts):
    draw, mean = LAWS[law]
    n_samples = 40_000 if n_texts < 100 else 6_000
    share, error = coverage(draw(np.random.default_rng(n_texts), (n_samples, n_texts)), mean)
    # Three standard errors of the simulation, at most 1.1 percentage points, are allowed on either side.
    if (law, n_texts) in TOO_WIDE:
        assert share == pytest.approx(TOO_WIDE[law, n_texts], abs=3 * error)
        assert share > 0.98
    else:
        assert 0.92 - 3 * error < share < 0.98 + 3 * error


@pytest.mark.parametrize("n_texts", [TEXTS_FOR_INTERVAL, 8, 20, 200])
@pytest.mark.parametrize("centre", [0.0, 0.6, 1.5, 2.5])
def test_intervals_of_mean_correlations_cover_and_stay_within_their_range(centre, n_texts):
    law = stats.norm(centre, 0.5)
    values = np.tanh(
        law.rvs((20_000 if n_texts < 100 else 4_000, n_texts), random_state=np.random.default_rng(n_texts))
    )
    low, high = mean_intervals(values, (-1.0, 1.0))
    assert low.min() >= -1
    assert high.max() <= 1
    share, error = coverage(values, law.expect(np.tanh), (-1.0, 1.0))
    assert 0.92 - 3 * error < share < 0.98 + 3 * error


@pytest.mark.parametrize(
    ("n_texts", "p", "least", "most"),
    [
        (TEXTS_FOR_INTERVAL, 0.05, 0.999, 1.0),
        (8, 0.05, 0.999, 1.0),
        (20, 0.05, 0.982, 1.0),
        (50, 0.3, 0.95, 0.98),
        (200, 0.1, 0.946, 0.972),
        (200, 0.05, 0.946, 0.994),
    ],
)
def test_intervals_of_shares_cover_in_at_least_94_percent_and_are_wide_on_few_texts(n_texts, p, least, most):
    """Exactly, by the binomial distribution, for means from p to 1 − p of values that are 0 or 1."""
    counts, means = np.arange(n_texts + 1), np.linspace(p, 1 - p, 91)[:, None]
    low, high = mean_intervals((np.arange(n_texts) < counts[:, None]).astype(float), (0.0, 1.0))
    # Only equal values have no interval.
    assert np.flatnonzero(np.isnan(low)).tolist() == [0, n_texts]
    probabilities = stats.binom.pmf(counts, n_texts, means)
    held = (probabilities * ((low <= means) & (means <= high))).sum(axis=1)
    shares = held / probabilities[:, 1:-1].sum(axis=1)
    assert least < shares.min()
    assert shares.max() <= most + 1e-12


@pytest.mark.parametrize(("n_texts", "expected"), [(6, 0.866), (200, 0.937)])
def test_tails_heavier_than_promised_have_the_coverage_that_the_docstring_names(n_texts, expected):
    values = np.random.default_rng(1).lognormal(0.0, 1.5, (40_000 if n_texts < 100 else 6_000, n_texts))
    share, error = coverage(values, exp(1.5**2 / 2))
    # The standard error is that of 92 %; at 87 % it is 1.3 times as large.
    assert share == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize("n_texts", range(TEXTS_FOR_INTERVAL))
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


@pytest.mark.parametrize("n_seeds", [2, 3, 4])
def test_few_seeds_have_student_s_interval_within_bounds(n_seeds):
    values = np.random.default_rng(n_seeds).normal(0.9, 0.05, (20_000, n_seeds))
    low, high = seed_intervals(values)
    expected = stats.t.interval(0.95, n_seeds - 1, loc=values.mean(axis=1), scale=stats.sem(values, axis=1))
    assert np.allclose((low, high), expected, rtol=1e-9)
    assert ((low <= 0.9) & (high >= 0.9)).mean() == pytest.approx(0.95, abs=0.005)
    shares = values.clip(0.0, 0.99)
    free, bound = seed_intervals(shares), seed_intervals(shares, (0.0, 1.0))
    assert np.array_equal(bound, np.clip(free, 0.0, 1.0), equal_nan=True)
    assert np.nanmax(free) > np.nanmax(bound) == 1.0


def test_one_seed_or_equal_results_have_no_interval_and_many_seeds_the_rule_of_texts():
    assert np.isnan(seed_intervals(np.array([[0.5], [0.7]]))).all()
    assert np.isnan(seed_intervals(np.full((2, 3), 0.1), (0.0, 1.0))).all()
    assert np.isnan(seed_intervals(np.full((2, 20), 0.1), (0.0, 1.0))).all()
    values = np.random.default_rng(0).beta(5, 1, (4, TEXTS_FOR_INTERVAL))
    assert np.array_equal(seed_intervals(values, (0.0, 1.0)), mean_intervals(values, (0.0, 1.0)))


def test_the_jackknife_of_a_mean_is_its_interval_and_that_of_a_ratio_covers_it():
    rng = np.random.default_rng(0)
    values = rng.gamma(2.0, size=9)
    without_each = (values.sum() - values) / 8
    expected = [end[0] for end in mean_intervals(values[None])]
    assert jackknife_interval(values.mean(), without_each) == pytest.approx(expected, rel=1e-9)
    held = 0
    for _ in range(2_000):
        x, y = rng.gamma(4.0, size=(2, 16))
        ratio = x.sum() / y.sum()
        low, high = jackknife_interval(ratio, (x.sum() - x) / (y.sum() - y))
        held += low <= 1 <= high
    # Three standard errors of 2,000 samples are 1.5 percentage points.
    assert 0.92 - 0.015 < held / 2_000 < 0.98 + 0.015


def pearson(samples):
    """Pearson's correlation of the two columns of every sample."""
    x, y = np.moveaxis(samples - samples.mean(axis=1, keepdims=True), 2, 0)
    return (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))


@pytest.mark.parametrize("n", [10, 24, 60])
@pytest.mark.parametrize("r", [0.0, 0.5, 0.9])
def test_intervals_of_correlations_cover_the_correlation_of_the_law(r, n):
    rng = np.random.default_rng(n)
    pairs = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], (2_000, n))
    # Spearman's ρ of the bivariate normal distribution.
    rho = 6 / np.pi * np.arcsin(r / 2)
    held = {"pearson": 0, "spearman": 0}
    correlations, ranks = pearson(pairs), pearson(stats.rankdata(pairs, axis=1))
    assert ranks[0] == pytest.approx(stats.spearmanr(pairs[0]).statistic)
    for correlation, rank_correlation in zip(correlations.tolist(), ranks.tolist(), strict=True):
        low, high = correlation_interval(correlation, n)
        held["pearson"] += low <= r <= high
        low, high = rank_correlation_interval(rank_correlation, n)
        held["spearman"] += low <= rho <= high
        assert -1 <= low < high <= 1
    for count in held.values():
        assert 0.92 - 0.02 < count / 2_000 < 0.98 + 0.02


def test_perfect_ranks_have_an_interval_and_too_few_pairs_none():
    low, high = rank_correlation_interval(1.0, 16)
    assert 0.95 < low < high < 1
    assert rank_correlation_interval(-1.0, 16) == pytest.approx((-high, -low))
    assert np.isnan(rank_correlation_interval(0.5, 5)).all()
    assert np.isnan(rank_correlation_interval(float("nan"), 9)).all()
    assert np.isnan(correlation_interval(1.0, 9)).all()
