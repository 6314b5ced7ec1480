"""The softmax surrogate against models that are one, and against scipy's least squares over all masks."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import least_squares

from heedful.perturb.masks import Draws, Law, spread_draws
from heedful.perturb.slalom_fit import fit_softmax

D = 5
ALL = np.array(list(product([False, True], repeat=D)))


def pooled(keep, s, v, leaves):
    """One softmax over the kept units and what removal leaves."""
    last = (~keep).sum(axis=1) if leaves else np.ones(len(keep))
    g = np.hstack([keep, last[:, None]]) * np.exp(s)
    return g @ v / g.sum(axis=1)


@pytest.mark.parametrize("leaves", [False, True])
def test_a_softmax_is_recovered_from_drawn_masks(leaves):
    rng = np.random.default_rng(3)
    s, v = rng.normal(size=(2, 13))
    draws = spread_draws(Law(np.full(13, 300 / 13)), 0, 300, "stratified", rng)
    fits = fit_softmax(draws, pooled(draws.keep, s, v, leaves), leaves)
    values, errors = fits.with_errors(fits.v[:, :-1])
    assert np.allclose(values, v[:-1], atol=1e-6)
    assert errors.max() < 1e-6
    assert np.allclose(fits.importances[0], s[:-1] - s[:-1].mean(), atol=1e-6)
    assert fits.empty == pytest.approx(v[-1], abs=1e-6)
    whole = pooled(np.ones((1, 12), dtype=bool), s, v, leaves)[0]
    assert fits.shares[0].sum() == pytest.approx(whole - v[-1], abs=1e-6)
    assert fits.r_squared == pytest.approx(1, abs=1e-9)


def test_no_start_of_scipy_fits_a_near_softmax_better():
    rng = np.random.default_rng(0)
    f = pooled(ALL, *rng.normal(size=(2, D + 1)), False) + 0.3 * ALL[:, 0] * ALL[:, 1] * ALL[:, 2]
    mass = np.ones(len(ALL)) / len(ALL)
    fits = fit_softmax(Draws(ALL, mass, len(ALL), paired=False), f, leaves=False)

    def residuals(x):
        return pooled(ALL, x[: D + 1], x[D + 1 :], False) - f

    starts = [np.concatenate([rng.normal(size=D + 1), np.full(D + 1, f.mean())]) for _ in range(5)]
    best = min(2 * least_squares(residuals, start).cost for start in starts)
    reached = (residuals(np.concatenate([fits.s[0], fits.v[0]])) ** 2).sum()
    assert best - 1e-9 <= reached <= best + 0.003 * len(f) * f.var()
    assert fits.n_folds == 0


FOUR = np.array(list(product([False, True], repeat=4)))
BAD = "-1.5635 -1.6011 -1.6357 -1.4989 -1.713 -1.6758 -1.6925 -1.5349 -1.713 -1.6758 -1.6925 -1.5349 -1.6984 -1.6395 "
BAD += "-1.602 -1.4576"
HATE = "-1.5635 -0.5572 -0.3981 1.5895 -0.3981 1.5895 1.0692 1.7817 -1.2434 -0.6502 0.6311 1.5216 0.6311 1.5216 1.3 "
HATE += "1.6943"
"""Logits of a small BERT for "very very bad people" and "i hate hate you" with words deleted, in the order of FOUR."""


def listed(f, masks=ALL):
    return fit_softmax(Draws(masks, mass_of(masks), len(masks), paired=False), f, leaves=False)


def mass_of(masks):
    """All sizes equally likely."""
    sizes = masks.sum(axis=1)
    return 1 / np.bincount(sizes)[sizes]


def numbers(line):
    return np.array([float(number) for number in line.split()])


@pytest.mark.parametrize("line", [BAD, HATE])
def test_of_all_masks_no_start_of_scipy_reaches_a_better_optimum(line):
    rng, f = np.random.default_rng(0), numbers(line)

    def residuals(x):
        return np.sqrt(mass_of(FOUR)) * (pooled(FOUR, x[:5], x[5:], False) - f)

    starts = [np.concatenate([1.5 * rng.normal(size=5), np.full(5, f.mean())]) for _ in range(12)]
    best = min(2 * least_squares(residuals, start, max_nfev=300).cost for start in starts)
    fits = listed(f, FOUR)
    assert (residuals(np.concatenate([fits.s[0], fits.v[0]])) ** 2).sum() <= 1.05 * best


def test_an_arbitrary_split_between_equal_units_is_inside_of_the_interval():
    f = numbers(HATE)
    first, second = (f[(keep == FOUR).all(axis=1)] for keep in ([0, 1, 0, 1], [0, 0, 1, 1]))
    assert first == second
    fits = listed(f, FOUR)
    scores, error = fits.with_errors(fits.shares)
    assert fits.n_others > 0
    # Exchanging the two changes no residual, so the other score is as good.
    assert 0.3 < abs(scores[1] - scores[2]) <= min(error[1], error[2]) + 1e-3


def test_the_shift_of_a_hundred_times_weaker_prior_is_part_of_the_error():
    rng = np.random.default_rng(0)
    f = pooled(ALL, *rng.normal(size=(2, D + 1)), False) + 0.3 * ALL[:, 0] * ALL[:, 1] * ALL[:, 2]
    fits = listed(f)
    _, error = fits.with_errors(fits.v[:, :-1])
    assert (error >= np.abs(fits.v[1, :-1] - fits.v[0, :-1])).all()
    assert error.max() > 0


def test_r_squared_of_all_masks_is_that_of_masks_held_out():
    rng = np.random.default_rng(0)
    # Noise: a softmax with 11 free numbers fits part of 32 values, and predicts none of those it has not seen.
    f = rng.normal(size=len(ALL))
    fits = listed(f)
    inside = ((pooled(ALL, fits.s[0], fits.v[0], False) - f) ** 2).mean() / f.var()
    assert 1 - inside > 0.2
    assert fits.r_squared < 0.1
