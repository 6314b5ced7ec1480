from itertools import combinations

import numpy as np
from scipy.stats import chisquare

from heedful.perturb.masks import generator, lime_masks
from tests.conftest import tiny_model


def test_sizes_are_uniform_and_so_are_the_sets_of_each_size():
    removed = ~lime_masks(4, 60_001, np.random.default_rng(0))[1:]
    assert chisquare(np.bincount(removed.sum(axis=1), minlength=5)[1:]).pvalue > 0.001
    pairs = dict.fromkeys(combinations(range(4), 2), 0)
    for row in removed[removed.sum(axis=1) == 2]:
        pairs[tuple(np.flatnonzero(row).tolist())] += 1
    assert chisquare(list(pairs.values())).pvalue > 0.001


def test_the_whole_document_comes_first_and_only_there():
    keep = lime_masks(5, 500, np.random.default_rng(0))
    assert keep[0].all()
    assert not keep[1:].all(axis=1).any()


def test_chance_depends_on_seed_and_text_alone():
    one, other = (tiny_model().encode(text) for text in ("good film", "bad film"))

    def draw(seed, document):
        return generator(seed, document).integers(0, 2**60)

    assert draw(0, one) == draw(0, tiny_model(seed=5).encode("good film"))
    assert len({draw(0, one), draw(1, one), draw(0, other)}) == 3
