import numpy as np
import pytest
from scipy import stats

from heedful.statistics.correlation import kendall, pearson, ranks, spearman


@pytest.mark.parametrize("seed", range(5))
def test_correlations_are_those_of_scipy_with_and_without_ties(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=20), rng.integers(0, 5, size=20).astype(float)
    assert pearson(one, other) == pytest.approx(stats.pearsonr(one, other).statistic, abs=1e-12)
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-12)
    assert kendall(one, other) == pytest.approx(stats.kendalltau(one, other).statistic, abs=1e-12)
    assert kendall(other, other[::-1]) == pytest.approx(stats.kendalltau(other, other[::-1]).statistic, abs=1e-12)
    assert ranks(other).tolist() == (stats.rankdata(other) - 1).tolist()


def test_a_constant_side_has_no_correlation():
    assert np.isnan(pearson(np.full(4, 0.1), np.arange(4.0)))
    assert np.isnan(spearman(np.arange(4.0), np.full(4, 0.1)))
    assert np.isnan(kendall(np.full(4, 0.1), np.arange(4.0)))
