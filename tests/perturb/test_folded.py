from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from heedful.perturb.folded import fit_banzhaf, folded_draws

EVERY = np.array(list(product([False, True], repeat=12)))


def brute_banzhaf(f, d=12):
    """The mean of f with a unit less that without it, over all masks."""
    every = EVERY[: 2**d, 12 - d :]
    values = f(every)
    return np.array([values[every[:, j]].mean() - values[~every[:, j]].mean() for j in range(d)])


def game(seed):
    """A smooth function of masks with joint effects of every order."""
    rng = np.random.default_rng(seed)
    first, second, third = rng.normal(size=(3, 12, 6))
    return lambda keep: expit(keep @ first) @ rng_weights(seed) + expit(keep @ second - 1) @ third[0] * 2


def rng_weights(seed):
    return np.random.default_rng([seed, 1]).normal(size=6)


@pytest.mark.parametrize("n_samples", [24, 40, 64, 200])
def test_masks_come_with_their_complements_and_units_are_orthogonal(n_samples):
    draws = folded_draws(12, n_samples, np.random.default_rng(0))
    assert (draws.keep[::2] == ~draws.keep[1::2]).all()
    signs = np.where(draws.keep, 1, -1)
    assert (signs.T @ signs == len(signs) * np.eye(12)).all()
    assert len(signs) <= n_samples


def test_joint_effects_of_two_units_do_not_disturb():
    rng = np.random.default_rng(0)
    single, joint = rng.normal(size=12), rng.normal(size=(12, 12))

    def f(keep):
        return keep @ single + np.einsum("mi,ij,mj->m", keep, joint, keep)

    draws = folded_draws(12, 24, rng)
    assert np.allclose(fit_banzhaf(draws, f(draws.keep)).coefficients, brute_banzhaf(f), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_with_every_mask_values_are_exact(d):
    whole = game(3)

    def f(keep):
        return whole(np.concatenate([np.zeros((len(keep), 12 - d), dtype=bool), keep], axis=1))

    draws = folded_draws(d, 2**d, np.random.default_rng(0))
    assert len({row.tobytes() for row in draws.keep}) == 2**d
    line = fit_banzhaf(draws, f(draws.keep))
    assert np.allclose(line.coefficients, brute_banzhaf(f, d), atol=1e-12)
    assert (line.half_widths == 0).all()


def test_the_mean_over_seeds_is_the_exact_value():
    f, fits = game(1), []
    for seed in range(300):
        draws = folded_draws(12, 32, np.random.default_rng(seed))
        fits.append(fit_banzhaf(draws, f(draws.keep)).coefficients)
    error = np.mean(fits, axis=0) - brute_banzhaf(f)
    assert (np.abs(error) <= 4 * np.std(fits, axis=0) / np.sqrt(len(fits))).all()


@pytest.mark.parametrize("n_samples", [32, 64, 256])
def test_intervals_cover_the_exact_values(n_samples):
    inside = []
    for number in range(20):
        f = game(number)
        exact = brute_banzhaf(f)
        for seed in range(10):
            draws = folded_draws(12, n_samples, np.random.default_rng([number, seed]))
            line = fit_banzhaf(draws, f(draws.keep))
            inside.append(np.abs(line.coefficients - exact) <= line.half_widths)
    assert 0.92 <= np.mean(inside) <= 0.98


def test_several_blocks_are_one_fit():
    f, rng = game(2), np.random.default_rng(0)
    draws = folded_draws(12, 48, rng).and_more(folded_draws(12, 64, rng))
    line = fit_banzhaf(draws, f(draws.keep))
    x = np.concatenate([draws.keep, np.ones((len(draws.keep), 1))], axis=1)
    free = np.linalg.lstsq(x, f(draws.keep), rcond=None)[0]
    assert np.allclose([*line.coefficients, line.intercept], free, atol=1e-9)
