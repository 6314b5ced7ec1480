"""Laws of sizes against sums over all masks."""

from itertools import product
from math import comb

import numpy as np
import pytest

from heedful.perturb.size_law import KnownLaw
from heedful.perturb.surrogate import kernel

D = 6
MASKS = np.array(list(product([False, True], repeat=D)))
SIZES = MASKS.sum(axis=1)
LAWS = [KnownLaw.lime(D, 500, 25.0, 0.7), KnownLaw.shapley(D)]


def mass_of_masks(law):
    """The mass of every single mask."""
    return law.mass[SIZES] / np.array([comb(D, int(size)) for size in SIZES])


@pytest.mark.parametrize("law", LAWS)
def test_moments_are_those_of_a_sum_over_all_masks(law):
    mass = mass_of_masks(law)
    mean = mass @ MASKS / mass.sum()
    assert law.mean_size == pytest.approx(mean.sum())
    centred = MASKS - mean
    matrix = centred.T @ (centred * mass[:, None]) + law.ridge * np.eye(D)
    assert np.ones(D) @ matrix @ np.ones(D) == pytest.approx(law.size_spread)
    # Along every direction that sums to zero the matrix is the same multiple of the identity.
    direction = np.random.default_rng(0).normal(size=D)
    direction -= direction.mean()
    assert np.allclose(matrix @ direction, law.spread * direction)


def test_the_law_of_lime_is_its_kernel_times_uniform_sizes():
    weights = kernel(MASKS, 25.0)
    expected = np.array([weights[k == SIZES][0] * (1.0 if k == D else 499 / D) for k in range(D + 1)])
    assert np.allclose(LAWS[0].mass, expected)


@pytest.mark.parametrize("law", LAWS)
def test_weighted_draws_have_the_mass_of_the_law(law):
    keep = law.draw(40_000, np.random.default_rng(1))
    assert (keep[:, 0] ^ keep[:, 1]).all()
    drawn = keep[:, 0].sum(axis=1)
    shares = np.bincount(drawn, weights=law.weight[drawn], minlength=D + 1) / len(drawn)
    assert np.allclose(shares[1:-1], law.mass[1:-1], rtol=0.05)
    assert np.allclose(keep[:, 0].mean(axis=0), 0.5, atol=0.015)
