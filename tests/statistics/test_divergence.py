from itertools import product
from math import log

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from heedful.statistics.divergence import jensen_shannon, total_variation

RNG = np.random.default_rng(0)
ONE, OTHER = RNG.dirichlet(np.full(5, 0.3), size=(2, 7)), RNG.dirichlet(np.ones(5), size=(2, 7))


def test_the_jensen_shannon_divergence_is_that_of_scipy():
    assert jensen_shannon(ONE, OTHER) == pytest.approx(jensenshannon(ONE, OTHER, axis=-1) ** 2, abs=1e-12)
    assert jensen_shannon(ONE, ONE).max() == 0


def test_total_variation_is_the_largest_difference_of_an_event():
    events = np.array([*product([0, 1], repeat=5)])
    assert total_variation(ONE, OTHER) == pytest.approx(np.abs((ONE - OTHER) @ events.T).max(axis=-1))


def test_distributions_without_a_common_outcome_are_farthest():
    ends = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    assert jensen_shannon(ends[0], ends[1]) == pytest.approx(log(2))
    assert total_variation(ends[0], ends[1]) == 1


@pytest.mark.parametrize("distance", [jensen_shannon, total_variation])
def test_rows_are_compared_with_one_distribution(distance):
    assert distance(ONE, OTHER[0, 0])[1, 2] == pytest.approx(float(distance(ONE[1, 2], OTHER[0, 0])))
