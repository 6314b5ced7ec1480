import numpy as np
import pytest

from heedful.experiments.mathematics.document_game import DocumentGame
from heedful.experiments.mathematics.exact_means import mean_by_size, moments_by_size
from heedful.experiments.mathematics.subsets import all_kept


def random_game(d, n_heads, scale, seed=0):
    rng = np.random.default_rng(seed)
    a, b = np.exp(scale * rng.standard_normal((2, n_heads, d)))
    A, B = a * rng.standard_normal((n_heads, d)), b * rng.standard_normal((n_heads, d))
    D_F = np.exp(scale * rng.standard_normal(n_heads))
    return DocumentGame(a, b, A, B, D_F, D_F * rng.standard_normal(n_heads))


@pytest.mark.parametrize(("d", "n_heads", "scale"), [(1, 1, 1.0), (6, 2, 0.3), (9, 3, 2.0), (8, 1, 5.0)])
def test_means_are_those_over_all_sets_of_a_size(d, n_heads, scale):
    game = random_game(d, n_heads, scale)
    keep = all_kept(d)
    f, gone = game.values(keep), d - keep.sum(axis=1)
    assert np.allclose(mean_by_size(game), [f[gone == s].mean() for s in range(d + 1)], rtol=0, atol=1e-10)


def test_mean_and_variance_of_a_sum_are_those_over_all_sets_of_a_size():
    a, b = np.random.default_rng(1).uniform(-1, 3, size=(2, 8))
    keep = all_kept(8)
    H, gone = np.where(keep, a, b).sum(axis=1), 8 - keep.sum(axis=1)
    mean, variance = moments_by_size(a, b)
    assert np.allclose(mean, [H[gone == s].mean() for s in range(9)], atol=1e-12)
    assert np.allclose(variance, [H[gone == s].var() for s in range(9)], atol=1e-12)
