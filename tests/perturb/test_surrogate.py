import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import pairwise_distances

from heedful.errors import BadInput
from heedful.perturb.masks import Draws, Law, lime_masks, spread_draws
from heedful.perturb.surrogate import fit_lime, fit_shapley, kernel
from tests.theory.test_exact import brute_shapley


def fit(keep, values, weights, ridge):
    """Each mask drawn for itself, the whole document first."""
    return fit_lime(Draws(keep, np.ones(len(keep)), 1, paired=False), values, weights, ridge)


@pytest.mark.parametrize("ridge", [0.0, 1.0, 50.0])
def test_the_surrogate_equals_scikit_learn_s_ridge(ridge):
    rng = np.random.default_rng(0)
    keep = lime_masks(7, 300, rng)
    values, weights = rng.standard_normal(300), rng.random(300)
    line = fit(keep, values, weights, ridge)
    theirs = Ridge(alpha=ridge, fit_intercept=True).fit(keep, values, sample_weight=weights)
    assert np.allclose(line.coefficients, theirs.coef_, atol=1e-10)
    assert line.intercept == pytest.approx(theirs.intercept_, abs=1e-10)
    assert line.r_squared == pytest.approx(theirs.score(keep, values, weights), abs=1e-10)


@pytest.mark.parametrize("ridge", [1.0, 50.0])
def test_with_a_ridge_on_the_intercept_too_it_is_equation_16_as_printed(ridge):
    rng = np.random.default_rng(0)
    keep = lime_masks(7, 300, rng)
    values, weights = 2 + rng.standard_normal(300), rng.random(300)
    line = fit_lime(Draws(keep, np.ones(300), 1, paired=False), values, weights, ridge, ridge)
    ones = np.hstack([np.ones((300, 1)), keep])
    theirs = Ridge(alpha=ridge, fit_intercept=False).fit(ones, values, sample_weight=weights)
    assert np.allclose([line.intercept, *line.coefficients], theirs.coef_, atol=1e-10)
    assert line.r_squared == pytest.approx(theirs.score(ones, values, weights), abs=1e-10)


def test_the_kernel_is_the_official_package_s():
    keep = lime_masks(9, 50, np.random.default_rng(0))
    distance = pairwise_distances(keep.astype(float), np.ones((1, 9)), metric="cosine").ravel() * 100
    assert np.allclose(kernel(keep, 25.0), np.sqrt(np.exp(-(distance**2) / 25**2)), atol=1e-12)


def curved(keep):
    """A function that is not linear: a ratio with an interaction."""
    x = keep.astype(float)
    return (x @ np.arange(12.0) + 3) / (1 + x[:, 0] * x[:, 1] + x @ np.linspace(0.2, 1, 12))


@pytest.mark.parametrize("n_samples", [60, 150, 1000])
def test_intervals_cover_what_very_many_samples_give(n_samples):
    many = lime_masks(12, 400_000, np.random.default_rng(99))
    # The ridge is per fit, so that the limit has the same ridge a sample.
    truth = fit(many, curved(many), kernel(many, 25.0), 400_000 / n_samples).coefficients
    covered = []
    for seed in range(300):
        keep = lime_masks(12, n_samples, np.random.default_rng(seed))
        line = fit(keep, curved(keep), kernel(keep, 25.0), 1.0)
        covered.append(np.abs(line.coefficients - truth) <= line.half_widths)
    assert 0.92 <= np.mean(covered) <= 0.98


def test_a_linear_model_is_recovered_exactly():
    keep = lime_masks(6, 200, np.random.default_rng(0))
    line = fit(keep, keep @ np.arange(6.0) + 2, kernel(keep, 25.0), 0.0)
    assert np.allclose(line.coefficients, np.arange(6), atol=1e-10)
    assert line.half_widths.max() < 1e-10
    assert line.intercept == pytest.approx(2)


def test_indistinguishable_units_are_refused_without_a_ridge():
    keep = np.repeat(lime_masks(3, 50, np.random.default_rng(0))[:, :1], 2, axis=1)
    weights = np.ones(50)
    with pytest.raises(BadInput, match="The regression is singular"):
        fit(keep, weights, weights, 0.0)
    assert np.isfinite(fit(keep, weights, weights, 1.0).coefficients).all()


def test_all_sets_give_the_shapley_values_of_brute_force():
    law = Law.shapley(6, 100)
    draws = spread_draws(law, law.listed(), 100, "stratified", np.random.default_rng(0))
    assert draws.n_certain == len(draws.keep) == 64
    x = draws.keep.astype(float)
    values = (x @ np.arange(6.0) + 3) / (1 + x[:, 0] * x[:, 1] + x @ np.linspace(0.2, 1, 6))
    line = fit_shapley(draws, values)
    assert np.allclose(line.coefficients, brute_shapley(draws.keep.astype(int), values), atol=1e-10)
    assert (line.half_widths == 0).all()
    assert line.top_certainty == 1


def test_the_top_five_are_as_certain_as_simulation_says():
    """Over many seeds the stated certainty is at most the share of runs that find the true five (Bonferroni)."""
    many = lime_masks(12, 200_000, np.random.default_rng(99))
    truth = set(np.argsort(-np.abs(fit(many, curved(many), kernel(many, 25.0), 400.0).coefficients))[:5].tolist())
    hits, stated = [], []
    for seed in range(200):
        keep = lime_masks(12, 500, np.random.default_rng(seed))
        line = fit(keep, curved(keep), kernel(keep, 25.0), 1.0)
        hits.append(set(np.argsort(-np.abs(line.coefficients))[:5].tolist()) == truth)
        stated.append(line.top_certainty)
    assert np.mean(stated) <= np.mean(hits) + 0.05
    assert np.mean(stated) > 0.2
    clear = np.array(stated) > 0.9
    assert clear.any()
    assert np.mean(np.array(hits)[clear]) > 0.85
