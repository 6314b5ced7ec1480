import numpy as np

from heedful.experiments.mathematics.plain_game import PlainGame
from heedful.experiments.mathematics.positions import random_positions
from heedful.experiments.mathematics.subsets import all_kept


def test_documents_meet_the_assumptions_of_the_theorem():
    positions = random_positions(300, 40, 5, seed=2)
    assert all(((x >= 1) & (x <= 2)).all() for x in (positions.g, positions.g_h))
    assert all((np.abs(x) <= 2).all() for x in (positions.w, positions.w_h))
    assert (positions.g[:, 40:] == positions.g_h[:, 40:]).all()
    assert (positions.w[:, 40:] == positions.w_h[:, 40:]).all()
    assert (positions.g[:, :40] > positions.g_h[:, :40]).all()
    assert len(np.unique(positions.w)) == 5 * 300


def test_a_longer_document_begins_like_a_shorter_one():
    short, long = random_positions(30, 5, 3, seed=0), random_positions(50, 9, 3, seed=0)
    assert (short.w_h[:, :5] == long.w_h[:, :5]).all()
    assert (short.g[:, 5:] == long.g[:, 9:34]).all()


def test_the_game_is_attention_over_all_positions():
    positions = random_positions(12, 4, 2, seed=1)
    keep = all_kept(4)
    for document in range(2):
        f = PlainGame.of(positions.games(), document).answers(keep)
        for row, answer in zip(keep, f, strict=True):
            here = np.append(row, np.ones(8, dtype=bool))
            g = np.where(here, positions.g[document], positions.g_h[document])
            w = np.where(here, positions.w[document], positions.w_h[document])
            assert abs(g @ w / g.sum() - answer) < 1e-12
    s, w, s_h, w_h = positions.scores(1)
    assert np.allclose(s[0].exp(), positions.g[1])
    assert np.allclose(s_h[0].exp(), positions.g_h[1])
    assert (w[0].numpy() == positions.w[1]).all()
    assert (w_h[0].numpy() == positions.w_h[1]).all()
