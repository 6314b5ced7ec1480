import numpy as np

from heedful.experiments.mathematics.document_game import DocumentGame
from heedful.experiments.mathematics.random_documents import random_documents
from heedful.experiments.mathematics.subsets import all_kept


def test_documents_meet_the_assumptions_of_the_theorem():
    documents = random_documents(300, 40, 5, seed=2)
    assert all(((x >= 1) & (x <= 2)).all() for x in (documents.g, documents.g_h))
    assert all((np.abs(x) <= 2).all() for x in (documents.w, documents.w_h))
    assert (documents.g[:, 40:] == documents.g_h[:, 40:]).all()
    assert (documents.w[:, 40:] == documents.w_h[:, 40:]).all()
    assert (documents.g[:, :40] > documents.g_h[:, :40]).all()
    assert len(np.unique(documents.w)) == 5 * 300


def test_a_longer_document_begins_like_a_shorter_one():
    short, long = random_documents(30, 5, 3, seed=0), random_documents(50, 9, 3, seed=0)
    assert (short.w_h[:, :5] == long.w_h[:, :5]).all()
    assert (short.g[:, 5:] == long.g[:, 9:34]).all()


def test_the_game_is_attention_over_all_positions():
    documents = random_documents(12, 4, 2, seed=1)
    keep = all_kept(4)
    for document in range(2):
        f = DocumentGame.of(documents.games(), document).values(keep)
        for row, answer in zip(keep, f, strict=True):
            here = np.append(row, np.ones(8, dtype=bool))
            g = np.where(here, documents.g[document], documents.g_h[document])
            w = np.where(here, documents.w[document], documents.w_h[document])
            assert abs(g @ w / g.sum() - answer) < 1e-12
    s, w, s_h, w_h = documents.scores(1)
    assert np.allclose(s[0].exp(), documents.g[1])
    assert np.allclose(s_h[0].exp(), documents.g_h[1])
    assert (w[0].numpy() == documents.w[1]).all()
    assert (w_h[0].numpy() == documents.w_h[1]).all()
