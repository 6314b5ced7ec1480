"""The softmax surrogate against models that are one, and against scipy's least squares over all masks."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import least_squares

from heedful.perturb.masks import Draws, Law, spread_draws
from heedful.perturb.slalom_fit import fit_softmax, with_errors

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
    values, errors = with_errors(fits.v[:, :-1])
    assert np.allclose(values, v[:-1], atol=1e-6)
    assert errors.max() < 1e-6
    assert np.allclose(fits.importances[0], s[:-1] - s[:-1].mean(), atol=1e-6)
    assert fits.empty == pytest.approx(v[-1], abs=1e-6)
    whole = pooled(np.ones((1, 12), dtype=bool), s, v, leaves)[0]
    assert fits.shares[0].sum() == pytest.approx(whole - v[-1], abs=1e-6)
    assert fits.r_squared == pytest.approx(1, abs=1e-9)


def test_no_start_of_scipy_fits_all_masks_much_better():
    rng = np.random.default_rng(0)
    f = pooled(ALL, *rng.normal(size=(2, D + 1)), False) + 0.3 * ALL[:, 0] * ALL[:, 1] * ALL[:, 2]
    mass = np.ones(len(ALL)) / len(ALL)
    fits = fit_softmax(Draws(ALL, mass, len(ALL), paired=False), f, leaves=False)

    def residuals(x):
        return pooled(ALL, x[: D + 1], x[D + 1 :], False) - f

    starts = [np.concatenate([rng.normal(size=D + 1), np.full(D + 1, f.mean())]) for _ in range(5)]
    best = min(2 * least_squares(residuals, start).cost for start in starts)
    assert 1 - best / (len(f) * f.var()) - 0.003 <= fits.r_squared <= 1 - best / (len(f) * f.var()) + 1e-9
    assert len(fits.s) == 1
    assert (with_errors(fits.v)[1] == 0).all()
