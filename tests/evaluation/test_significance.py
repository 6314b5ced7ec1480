import numpy as np
import pytest
from scipy import stats

from heedful.evaluation.significance import EXACT_TEXTS, N_FLIPS, holm, means, sign_flips


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
