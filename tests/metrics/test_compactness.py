from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from heedful.errors import BadInput, Unsupported
from heedful.metrics import measure
from heedful.metrics.compactness import Compactness, Entropy, Gini, UnitsForMass
from tests.metrics.linear import linear
from tests.metrics.masked_text import evaluation_of

ALL = (Gini, Entropy, UnitsForMass)


@cache
def of_length(n_units):
    return evaluation_of(linear(), " ".join(f"w{place}" for place in range(n_units)), np.zeros(n_units))


def on(scores, signed=True):
    base = of_length(len(scores))
    return replace(base, explanation=replace(base.explanation, scores=np.array(scores, dtype=float), signed=signed))


numbers = st.lists(st.floats(-100, 100).map(lambda number: round(number, 3)), min_size=1, max_size=12)


@pytest.mark.slow
@given(numbers.filter(any))
def test_each_is_what_its_definition_says(scores):
    sizes, d = np.abs(scores), len(scores)
    # Half the mean difference between two units, over the mean.
    pairs = sum(abs(size - other) for size in sizes for other in sizes)
    assert measure(Gini(), on(scores)) == pytest.approx(pairs / (2 * d * sizes.sum()), abs=1e-12)
    assert measure(Entropy(), on(scores)) == pytest.approx(entropy(sizes), abs=1e-12)
    for mass in (0.25, 0.9, 1.0):
        left, n_taken = sizes.sum() * mass, 0
        for size in sorted(sizes, reverse=True):
            if left <= 1e-9 * sizes.sum():
                break
            left, n_taken = left - size, n_taken + 1
        assert measure(UnitsForMass(mass=mass), on(scores)) == n_taken / d


@given(numbers.filter(any), st.randoms(use_true_random=False))
def test_neither_sign_nor_scale_nor_order_counts(scores, rng):
    others = [-3 * score if rng.random() < 0.5 else 3 * score for score in scores]
    rng.shuffle(others)
    for metric in ALL:
        assert measure(metric(), on(others)) == pytest.approx(measure(metric(), on(scores)), abs=1e-12)
        assert measure(metric(), on(np.abs(scores), signed=False)) == measure(metric(), on(scores))


def test_the_ends_of_the_scales():
    one, equal = on([0.0, 0.0, -5.0, 0.0]), on([2.0, -2.0, 2.0, 2.0])
    assert [measure(metric(), one) for metric in ALL] == [0.75, 0, 0.25]
    assert [measure(metric(), equal) for metric in ALL] == [0, pytest.approx(np.log(4)), 1]
    assert [measure(metric(), on([3.0])) for metric in ALL] == [0, 0, 1]


def test_rounding_needs_no_further_unit():
    # The computer's sum of the first two is a little less than the share that is asked for.
    assert 0.1 + 0.7 < 0.8
    assert measure(UnitsForMass(mass=0.8), on([0.7, 0.1, 0.1, 0.1])) == 0.5


@pytest.mark.parametrize("metric", ALL)
def test_scores_of_zero_have_no_distribution(metric):
    with pytest.raises(Unsupported, match=r"^All scores are zero, so their distribution is undefined\.$"):
        measure(metric(), on([0.0, 0.0]))


@pytest.mark.parametrize("mass", [0.0, -0.5, 1.5])
def test_a_mass_is_a_share(mass):
    with pytest.raises(BadInput, match=rf"^mass is {mass}; it must be above 0 and at most 1\.$"):
        UnitsForMass(mass=mass)


def test_compactness_is_the_number_of_units_with_a_score():
    """Lecture, chapter 10.3: the size of the explanation, e.g. its number of features; the old metrics give shares."""
    assert measure(Compactness(), on([0.0, -2.0, 0.5, 0.0, 1e-9])) == 2
    assert measure(Compactness(), on([3.0, -3.0, 3.0])) == 3
    assert measure(Compactness(tolerance=0.0), on([0.0, -2.0, 0.5, 0.0, 1e-9])) == 3
    assert measure(Compactness(tolerance=0.5), on([0.0, -2.0, 0.5, 0.0, 1e-9])) == 1
    assert measure(Compactness(), on([0.0, 0.0])) == 0
    with pytest.raises(BadInput, match="0 ≤ tolerance < 1"):
        Compactness(tolerance=1.0)
