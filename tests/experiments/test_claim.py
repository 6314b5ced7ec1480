import numpy as np

from heedful.experiments.claim import column, finite_or_none, mean_of
from heedful.statistics.intervals import TEXTS_FOR_INTERVAL


def test_a_mean_has_an_interval_that_contains_the_true_mean():
    inside = 0
    for seed in range(200):
        draws = np.random.default_rng(seed).normal(0.3, 1.0, 60)
        mean = mean_of(draws.tolist())
        assert np.isclose(mean.value, draws.mean())
        inside += mean.low <= 0.3 <= mean.high
    assert 178 <= inside <= 199  # 95 % of 200, within what chance allows


def test_one_number_has_no_interval_and_none_has_no_mean():
    assert str(mean_of([0.25])) == "0.250"
    assert np.isnan(mean_of([float("nan")]).value)
    assert mean_of([1.0, float("nan"), 3.0]).n == 2


def test_a_column_is_chosen_by_the_other_cells():
    rows = [{"law": "a", "x": 1}, {"law": "b", "x": 2.5}, {"law": "b", "x": None}]
    assert column(rows, "x", law="a") == [1.0]
    assert column(rows, "x", law="b")[0] == 2.5
    assert np.isnan(column(rows, "x", law="b")[1])


def test_few_values_have_student_s_interval():
    from scipy.stats import t

    for n in range(2, TEXTS_FOR_INTERVAL):
        values = np.random.default_rng(n).normal(size=n)
        mean = mean_of(values.tolist())
        half = t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
        assert np.allclose([mean.value - mean.low, mean.high - mean.value], half, rtol=1e-3)


def test_a_value_that_is_not_finite_is_none():
    assert [finite_or_none(cell) for cell in (1.5, 2, "a", None, True, float("nan"), float("inf"))] == [
        *(1.5, 2, "a", None, True, None, None)
    ]
