import numpy as np
import pytest

from heedful.experiments.mathematics.document_game import DocumentGame, games_of_text
from heedful.experiments.mathematics.subsets import all_kept

TEXT = "a good story but a dull film"


def test_a_game_says_what_the_model_says_to_the_text_with_words_replaced(paper):
    game = DocumentGame.of(games_of_text(paper, TEXT, "token"))
    words = np.array(TEXT.split(), dtype=object)
    keep = all_kept(len(words))[::7]
    texts = [" ".join(np.where(row, words, "neverseenword")) for row in keep]
    assert np.allclose(game.values(keep), paper(texts)[:, 1], atol=1e-9)


def test_a_type_is_all_its_occurrences(paper):
    game = DocumentGame.of(games_of_text(paper, TEXT, "type"))
    assert game.n_units == 6
    keep = np.array([[False, True, True, True, True, True]])
    changed = TEXT.replace("a ", "neverseenword ")
    assert game.values(keep)[0] == pytest.approx(float(paper([changed])[0, 1]), abs=1e-9)


def test_a_unit_that_is_always_kept_is_one_that_is_in_every_set(paper):
    game = DocumentGame.of(games_of_text(paper, TEXT, "token"))
    keep = all_kept(6)
    assert np.allclose(game.with_kept(2).values(keep), game.values(np.insert(keep, 2, True, axis=1)), atol=1e-12)
