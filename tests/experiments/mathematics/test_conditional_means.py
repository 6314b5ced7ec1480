import numpy as np
import pytest

from heedful.experiments.mathematics.conditional_means import mean_given_kept
from heedful.experiments.mathematics.document_game import DocumentGame
from heedful.experiments.mathematics.random_documents import random_documents
from heedful.experiments.mathematics.subsets import all_kept, lime_law


@pytest.mark.parametrize("d", [2, 3, 9])
def test_it_is_the_mean_over_all_sets_that_keep_the_word(d):
    games = random_documents(2 * d, d, 2, seed=4).games()
    keep = all_kept(d)
    law = lime_law(keep)
    for document, mean in enumerate(mean_given_kept(games)):
        game = DocumentGame.of(games, document)
        f = game.values(keep) - game.values(np.ones((1, d), dtype=bool))
        expected = [np.average(f[keep[:, j]], weights=law[keep[:, j]]) for j in range(d)]
        assert np.allclose(mean, expected, rtol=0, atol=1e-12)


def test_more_points_change_nothing_in_a_long_document():
    games = random_documents(500, 300, 1, seed=0).games()
    assert np.allclose(mean_given_kept(games, 48), mean_given_kept(games, 80), rtol=0, atol=1e-12)
