import numpy as np
import pytest
from scipy.stats import t

from heedful.experiments.claim import (
    CORRELATIONS,
    SHARES,
    agreement,
    column,
    finite_or_none,
    mean_of,
    mean_over_seeds,
)
from heedful.statistics.intervals import TEXTS_FOR_INTERVAL, mean_intervals


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


def test_few_documents_have_no_interval_and_few_trained_models_have_student_s():
    for n in range(2, TEXTS_FOR_INTERVAL):
        values = np.random.default_rng(n).normal(size=n)
        assert not mean_of(values.tolist()).has_interval
        found = mean_over_seeds(values.tolist())
        half = t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
        assert np.allclose([found.value - found.low, found.high - found.value], half, rtol=1e-9)


def test_intervals_keep_within_what_is_possible():
    """Before, they were [0.827, 1.100], [0.531, 1.093] and of no width."""
    accuracy = mean_over_seeds([0.99, 0.90, 1.0], SHARES)
    assert (accuracy.low, accuracy.high) == (pytest.approx(0.8265, abs=1e-3), 1.0)
    correlation = mean_of([0.99, 0.98, 0.2, 0.95, 0.97, 0.78], CORRELATIONS)
    assert correlation.low < correlation.value < correlation.high == 1.0
    for mean in (mean_of([0.3] * 20, SHARES), mean_over_seeds([0.3] * 3, SHARES)):
        assert not mean.has_interval
        assert str(mean) == "0.300"


def test_means_over_documents_and_over_many_models_follow_the_rule_for_texts():
    values = np.random.default_rng(0).beta(5, 1, 9)
    expected = [float(end[0]) for end in mean_intervals(values[None], SHARES)]
    for mean in (mean_of(values.tolist(), SHARES), mean_over_seeds(values.tolist(), SHARES)):
        assert [mean.low, mean.high] == expected


def test_agreement_means_that_one_value_lies_in_the_other_interval():
    assert agreement(0.8, 0.82, (0.79, 0.85)) == (
        "agrees",
        "The published value lies in our 95 % confidence interval.",
    )
    assert agreement(0.8, 0.82, (0.81, 0.83), (0.77, 0.83)) == (
        "agrees",
        "Our value lies in the published 95 % confidence interval.",
    )
    verdict, why = agreement(0.808, 0.939, (0.93, 0.95), (0.805, 0.811))
    assert verdict == "differs"
    assert why == "The published value does not lie in our 95 % confidence interval, nor ours in the published one."
    assert agreement(0.8, 0.8, (float("nan"), float("nan"))) == ("differs", "Our value has no confidence interval.")


def test_a_value_that_is_not_finite_is_none():
    assert [finite_or_none(cell) for cell in (1.5, 2, "a", None, True, float("nan"), float("inf"))] == [
        *(1.5, 2, "a", None, True, None, None)
    ]
