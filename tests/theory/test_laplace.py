import numpy as np
import pytest

from heedful.theory.laplace import WIDEST, exponential_sum, octave_of


@pytest.mark.parametrize("tight", [True, False])
@pytest.mark.parametrize("octave", [1, 4, 9, 17, 30, 31, 55, 90])
def test_the_stated_bound_holds_at_points_it_was_not_looked_up_at(octave, tight):
    rule = exponential_sum(octave, tight)
    D = np.exp(-np.log(2.0**octave) * np.random.default_rng(0).random(20_000))
    error = np.abs(D * (np.exp(-D[:, None] * rule.nodes) @ rule.weights) - 1)
    assert error.max() <= rule.bound * 1.02 + 1e-14
    assert rule.bound <= (1e-12 if tight else 1e-9)
    assert (rule.weights > 0).all()


def test_the_short_sums_are_short():
    assert len(exponential_sum(9, False).nodes) <= 21
    assert all(len(exponential_sum(k, False).nodes) < len(exponential_sum(k, True).nodes) for k in range(1, 31))


def test_spreads_round_up():
    assert [octave_of(spread) for spread in (1.0, 2.0, 2.1, 1000.0)] == [1, 1, 2, 10]
    assert octave_of(float("inf")) == octave_of(1e300)
    assert exponential_sum(octave_of(float("inf")), False).bound == 1.0
    assert exponential_sum(octave_of(WIDEST), False).bound < 1e-9
