"""Halves of documents, and values split half by half against the mean over all orders that keep the halves together."""

import numpy as np
import pytest

from heedful.models.question import ask
from heedful.perturb.hierarchy import halves, masks_needed, share_out
from heedful.perturb.sweep import Sweep
from tests.explainers.test_exact import forwards
from tests.explainers.test_hierarchical_shapley import by_all_orders, tree_of
from tests.families import PAIR, build, pictures

TEXT = "good film . not very dull !"


def test_the_tree_follows_sentences_then_words():
    document = build("bert").encode("good film . an unbelievable plot ! bad")
    split = halves(document, "token")
    holders = [document.coarsening("token", unit) for unit in ("sentence", "word")]

    def check(units):
        if len(units) == 1:
            return
        left, right = split(units)
        assert np.concatenate([left, right]).tolist() == units.tolist()
        for holder in holders:
            if len(set(holder[units])) > 1:
                assert not set(holder[left]) & set(holder[right])
                break
        check(left)
        check(right)

    check(np.arange(document.n_units("token")))
    assert document.n_units("token") > document.n_units("word")


def test_the_texts_of_a_pair_are_the_first_two_parts():
    document = build("bert").encode(PAIR)
    left, _ = halves(document, "word")(np.arange(document.n_units("word")))
    assert [document.word_texts[unit] for unit in left] == ["the", "film", "was", "good", "."]


def test_a_picture_is_halved_across_its_longer_side():
    split = halves(build("vit").encode(pictures()[0]), "patch")
    top, bottom = split(np.arange(16))
    assert top.tolist() == list(range(8))
    left, right = split(bottom)
    assert left.tolist() == [8, 9, 12, 13]
    assert right.tolist() == [10, 11, 14, 15]
    assert masks_needed(split, np.arange(16)) == 2 + 2 * (1 + 4 + 16 + 64)


def test_shares_of_single_units_are_the_mean_over_all_orders_of_the_tree(tiny):
    z, f = forwards(tiny, TEXT, "word", 1)
    value = {frozenset(np.flatnonzero(row).tolist()): output for row, output in zip(z, f, strict=True)}
    split = halves(tiny.encode(TEXT), "word")
    sweep = Sweep(ask(tiny, [TEXT], 1), 0, "word", "replace")
    shares = share_out(split, sweep, 10_000)
    assert np.allclose(shares.scores, by_all_orders(tree_of(split, np.arange(7)), value), atol=1e-12)
    assert (shares.spread_share, shares.n_spread, shares.stopped) == (0, 0, False)
    assert sweep.n_masks <= masks_needed(split, np.arange(7))


def test_a_small_budget_spreads_values_evenly_within_parts(tiny):
    split = halves(tiny.encode(TEXT), "word")
    z, f = forwards(tiny, TEXT, "word", 1)
    shares = share_out(split, Sweep(ask(tiny, [TEXT], 1), 0, "word", "replace"), 2)
    assert np.allclose(shares.scores, (f[z.all(axis=1)] - f[~z.any(axis=1)]) / 7, atol=1e-12)
    assert shares.empty == pytest.approx(f[~z.any(axis=1)][0], abs=1e-12)
    assert (shares.spread_share, shares.n_spread) == (1, 1)
