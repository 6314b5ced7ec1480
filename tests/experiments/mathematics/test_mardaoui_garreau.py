import numpy as np
import pytest

from heedful.experiments.mathematics.mardaoui_garreau import (
    cosine_kernel,
    large_bandwidth,
    least_squares_slopes,
    sigmas,
    theorem_1,
)
from heedful.experiments.mathematics.subsets import all_kept, lime_law


def masses(d, nu):
    """Every set's mass times its weight, the cosine distance taken from the masks themselves."""
    keep = all_kept(d)
    cosine = keep.sum(axis=1) / np.sqrt(np.maximum(keep.sum(axis=1), 1) * d)
    return keep, lime_law(keep) * np.exp(-((1 - cosine) ** 2) / (2 * nu**2))


@pytest.mark.parametrize("nu", [0.15, 0.25, 2.0])
def test_the_sigmas_are_the_rows_of_the_inverse_of_the_expected_matrix(nu):
    keep, mass = masses(6, nu)
    design = np.column_stack([np.ones(len(keep)), keep])
    inverse = np.linalg.inv(design.T @ (design * mass[:, None]))
    assert np.allclose(sigmas(6, nu), inverse[1, :3], rtol=1e-9)


def test_the_kernel_is_the_packages_with_its_distances_times_100():
    s = np.arange(11)
    package = np.sqrt(np.exp(-((100 * (1 - np.sqrt(1 - s / 10))) ** 2) / 25**2))
    assert np.allclose(cosine_kernel(10, 0.25), package)


@pytest.mark.parametrize("nu", [0.15, 0.25, 2.0])
def test_any_function_gets_the_weighted_least_squares_coefficients(nu):
    keep, mass = masses(7, nu)
    f = np.random.default_rng(0).standard_normal(len(keep))
    closed = theorem_1(float(mass @ f), (mass * f) @ keep, nu)
    root = np.sqrt(mass)[:, None]
    design = np.column_stack([np.ones(len(keep)), keep]) * root
    expected = (np.linalg.pinv(design) @ (f * root[:, 0]))[1:]
    assert np.allclose(closed, expected, atol=1e-9)
    assert np.allclose(least_squares_slopes(keep, f, mass), expected, atol=1e-9)


def test_on_a_linear_function_the_corrected_limit_gives_its_slopes_and_equation_17_does_not():
    slopes = np.array([1.0, -2.0, 0.5, 4.0, 0.0])
    keep = all_kept(5)
    law = lime_law(keep)
    f = 3 + keep @ slopes
    forms = large_bandwidth(5, (law * f) @ keep / (law @ keep), float(law @ f))
    assert np.allclose(forms["with both"], slopes)
    assert np.allclose(forms["with the factor"], slopes - slopes.mean())
    assert np.allclose(forms["Eq. (17)"], 6 / 4 * (slopes - slopes.mean()))
