import numpy as np
import pytest
from scipy import stats

from heedful.statistics.significance import EXACT_TEXTS, N_FLIPS, holm, mean_p_values, means, sign_flips


def test_means_leave_out_missing_values():
    values = np.array([[1.0, 2.0, np.nan], [np.nan, np.nan, np.nan]])
    result = means(values)
    assert result[0] == 1.5
    assert np.isnan(result[1])


@pytest.mark.parametrize("n_texts", [2, 5, 10])
def test_p_values_of_few_texts_are_exactly_those_of_scipy(n_texts):
    differences = np.random.default_rng(n_texts).normal(0.4, size=(6, n_texts))
    for row, p in zip(differences, sign_flips(differences, 0), strict=True):
        theirs = stats.permutation_test((row,), np.mean, permutation_type="samples", n_resamples=np.inf)
        assert p == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6])
def test_p_values_of_many_texts_are_those_of_scipy_within_the_noise_of_drawing(shift):
    differences = np.random.default_rng(1).normal(shift, size=(4, EXACT_TEXTS + 8))
    for row, p in zip(differences, sign_flips(differences, 0), strict=True):
        theirs = stats.permutation_test((row,), np.mean, permutation_type="samples", n_resamples=40_000, rng=2)
        assert p == pytest.approx(theirs.pvalue, rel=0.2, abs=1.5e-3)


def test_drawn_and_enumerated_flips_agree():
    """Texts without a difference change no p-value, but they make the flips be drawn."""
    differences = np.random.default_rng(3).normal(0.5, size=(30, EXACT_TEXTS))
    exact = sign_flips(differences, 0)
    drawn = sign_flips(np.pad(differences, ((0, 0), (0, 4)), constant_values=np.nan), 0)
    assert np.all(np.abs(drawn - exact) < 5 * np.sqrt(exact / N_FLIPS) + 0.2 * exact)


def test_the_least_p_value_is_that_of_one_flip():
    assert sign_flips(np.full((1, 6), 1.0), 0)[0] == 2 / 2**6
    assert sign_flips(np.full((1, 60), 1.0), 0)[0] == pytest.approx(1 / (N_FLIPS + 1))


def test_zero_differences_have_a_p_value_of_one():
    for n_texts in (5, 40):
        assert np.array_equal(sign_flips(np.zeros((2, n_texts)), 0), [1.0, 1.0])


@pytest.mark.parametrize("n_texts", [12, 40])
def test_p_values_under_the_null_hypothesis_are_below_five_percent_in_five_percent_of_cases(n_texts):
    p = sign_flips(np.random.default_rng(0).normal(size=(400, n_texts)), 0)
    assert 0.02 <= np.mean(p < 0.05) <= 0.09


def test_holm_is_stepped_bonferroni():
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.5, 0.9])).tolist() == pytest.approx([1.0, 1.0])
    assert holm(np.array([0.9, 0.001])).tolist() == pytest.approx([0.9, 0.002])


@pytest.mark.parametrize("noise", [0.0, 0.001])
@pytest.mark.parametrize("n_texts", [20, 30, 100])
def test_skewed_differences_of_mean_zero_are_rarely_better(n_texts, noise):
    """Sign flips alone call 12, 18 and 5 % of such rows better: losses that are rare are often not seen."""
    rng = np.random.default_rng(n_texts)
    rows = np.where(rng.random((2000, n_texts)) < 0.9, 0.05, -0.45) + noise * rng.normal(size=(2000, n_texts))
    better = (mean_p_values(rows, 0.5, 0) < 0.05) & (rows.mean(axis=1) > 0)
    assert better.mean() <= 0.06


@pytest.mark.parametrize("n_texts", [8, 20, 60])
def test_normal_differences_have_the_p_values_of_students_test_or_slightly_larger_ones(n_texts):
    rows = np.random.default_rng(0).normal(0.2, size=(300, n_texts))
    p = mean_p_values(rows, 1e-9, 0, level=0.0)
    theirs = stats.ttest_1samp(rows, 0, axis=1).pvalue / 2
    assert (p >= theirs * 0.999).all()
    assert np.median(p / theirs) <= 1.5


def test_equal_differences_are_significant_only_if_a_rare_loss_would_have_been_seen():
    for n_texts, gain in ((20, 0.05), (100, 0.05), (40, 1.0)):
        p = mean_p_values(np.full((1, n_texts), gain), 1.0, 0)[0]
        # The most frequent loss of 1 that leaves the mean at 0, and the probability to see none of it.
        share = gain / (1 + gain)
        assert p == pytest.approx(max((1 - share) ** n_texts, 0.5 / (N_FLIPS + 1)), rel=1e-9)


def test_a_p_value_does_not_depend_on_the_rows_that_are_tested_with_it():
    rows = np.random.default_rng(2).normal(0.3, size=(50, 60))
    alone = mean_p_values(rows[:1], 1.0, 0, level=1.1)
    assert mean_p_values(rows, 1.0, 0, level=1.1)[0] == alone[0]


def test_rows_without_values_or_without_a_difference_have_a_p_value_of_one():
    rows = np.array([[np.nan] * 30, [0.0] * 30])
    assert mean_p_values(rows, 1.0, 0).tolist() == [1.0, 1.0]
