from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

import heedful
from heedful.errors import BadInput
from heedful.evaluation.agreement import rank_correlation, rank_correlations, top_overlap

TEXT = "good film , good story . not dull !"


@pytest.fixture
def pair(tiny):
    rng = np.random.default_rng(0)
    base = heedful.explain(tiny, TEXT, "random")
    # Rounded, so that there are ties.
    return [replace(base, scores=rng.standard_normal(9).round(0)) for _ in range(2)]


def test_rank_correlation_is_spearmans_with_ties(pair):
    one, other = pair
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one.scores, other.scores).statistic)


def test_an_unsigned_method_is_compared_by_strength(pair):
    one, other = pair
    expected = spearmanr(np.abs(one.scores), np.abs(other.scores)).statistic
    assert rank_correlation(replace(one, signed=False), other) == pytest.approx(expected)


def test_a_constant_explanation_has_no_rank(pair):
    assert np.isnan(rank_correlation(pair[0], replace(pair[0], scores=np.ones(9))))


def test_overlap_counts_shared_strong_units(pair):
    one = replace(pair[0], scores=np.arange(9.0))
    assert top_overlap(one, replace(one, scores=-np.arange(9.0)), n=4) == 1.0
    assert top_overlap(one, replace(one, scores=np.arange(9.0)[::-1].copy()), n=4) == 0.0


def test_zeros_are_not_among_the_strongest(pair):
    """The old rule took the first units of a text for strongest where all but one were 0, and found them in common."""
    one = replace(pair[0], scores=np.array([0.0] * 8 + [1.0]))
    other = replace(one, scores=np.array([0.0] * 7 + [1.0, 0.0]))
    assert top_overlap(one, other) == 0.0
    assert top_overlap(one, one) == 1.0
    assert top_overlap(one, replace(one, scores=np.arange(9.0))) == 0.2
    assert np.isnan(top_overlap(replace(one, scores=np.zeros(9)), replace(one, scores=np.zeros(9))))


def test_rounding_is_not_ranked(pair):
    """Losses of 1e-17 are ties, and so are sums that differ in their last bit."""
    one = replace(pair[0], method="leave-one-out", scores=1e-17 * np.arange(9.0), output=2.0)
    assert np.isnan(rank_correlation(one, replace(one, scores=np.arange(9.0))))
    assert np.isnan(rank_correlations([one, one])).all()
    sums = replace(one, scores=np.array([0.1 + 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.5]))
    equal = replace(one, scores=np.array([0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.5]))
    assert rank_correlation(sums, equal) == pytest.approx(1.0)


def test_other_units_cannot_be_compared(tiny, pair):
    with pytest.raises(BadInput, match="same text at the same unit"):
        rank_correlation(pair[0], pair[0].to("type"))


def test_all_correlations_at_once_are_those_of_every_pair(pair):
    one, other = pair
    explanations = [one, other, replace(one, signed=False), replace(other, scores=np.ones(9))]
    together = rank_correlations(explanations)
    pairs = [[rank_correlation(a, b) for b in explanations] for a in explanations]
    np.testing.assert_allclose(together, pairs, rtol=0, atol=1e-15)
    with pytest.raises(BadInput, match="same text"):
        rank_correlations([one, one.to("type")])
