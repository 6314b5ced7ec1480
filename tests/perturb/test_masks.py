from fractions import Fraction
from itertools import combinations
from math import ceil

import numpy as np
import pytest
from scipy.stats import chisquare

from heedful.perturb.masks import Law, counts_of, first, generator, lime_draws, lime_masks, spread_draws
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


def test_rng_depends_on_seed_and_text_alone():
    first, second = (tiny_model().encode(text) for text in ("good film", "bad film"))

    def draw(seed, document):
        return generator(seed, document).integers(0, 2**60)

    assert draw(0, first) == draw(0, tiny_model(seed=5).encode("good film"))
    assert len({draw(0, first), draw(1, first), draw(0, second)}) == 3


@pytest.mark.parametrize("design", ["independent", "paired", "stratified"])
@pytest.mark.parametrize("law", [Law.lime(9, 4000), Law.shapley(9, 4000)], ids=["lime", "shapley"])
def test_every_design_has_the_law_s_mass_on_each_size(design, law):
    for listed in (0, 2):
        draws = spread_draws(law, listed, 4000, design, np.random.default_rng(0))
        gone = 9 - draws.keep.sum(axis=1)
        mass = np.bincount(gone, weights=draws.mass, minlength=10)
        sure = np.r_[0 : listed + 1, 9 - listed : 10]
        assert np.allclose(mass[sure], law.of_size[sure], atol=1e-9)
        assert np.allclose(mass, law.of_size, atol=4 * np.sqrt(4000 / 9))
        if design == "stratified":
            assert np.allclose(mass, law.of_size, atol=4)


def test_pairs_are_complements_and_every_unit_is_kept_in_half_of_them():
    draws = spread_draws(Law.lime(30, 500), 0, 500, "stratified", np.random.default_rng(0))
    drawn = draws.keep[draws.n_certain :]
    assert (drawn[0::2] == ~drawn[1::2]).all()
    assert (drawn.mean(axis=0) == 0.5).all()


def test_sizes_of_a_stratified_design_rise_evenly():
    draws = spread_draws(Law.lime(30, 500), 0, 500, "stratified", np.random.default_rng(0))
    sizes = 30 - draws.keep[draws.n_certain :: 2].sum(axis=1)
    assert (np.diff(sizes) >= 0).all()
    assert np.ptp(np.bincount(sizes)[1:30]) <= 2


@pytest.mark.parametrize("d", [2, 3, 8, 9])
def test_few_enough_sets_are_all_listed_once_with_their_exact_mass(d):
    law = Law.lime(d, 600)
    draws = spread_draws(law, law.listed(), 600, "stratified", np.random.default_rng(0))
    assert len(np.unique(draws.keep, axis=0)) == len(draws.keep) == draws.n_certain == 2**d
    gone = d - draws.keep.sum(axis=1)
    assert np.allclose(np.bincount(gone, weights=draws.mass), law.of_size)


def test_another_round_counts_what_is_certain_once():
    rng = np.random.default_rng(0)
    first, second = (spread_draws(Law.lime(12, n), 1, n, "stratified", rng) for n in (300, 200))
    both = first.and_more(second)
    assert len(both.keep) == len(first.keep) + len(second.keep) - first.n_certain
    assert both.mass[0] == 1
    assert both.mass.sum() == pytest.approx(1 + 299 + 199)


def test_independent_draws_are_the_official_package_s():
    draws = lime_draws(5, 100, np.random.default_rng(3))
    assert (draws.keep == lime_masks(5, 100, np.random.default_rng(3))).all()
    assert (draws.mass == 1).all()
    assert draws.n_certain == 1


def test_two_thousand_units_are_not_too_many():
    """2^d is no float there."""
    assert Law.shapley(2000, 20_000).listed() == 0
    assert Law.lime(2000, 20_000).listed() == 0


def test_the_first_of_an_order_are_marked_in_their_places():
    masks = first(np.array([2, 0, 3, 1]), np.array([0, 1, 3, 4]))
    assert [set(np.flatnonzero(row).tolist()) for row in masks] == [set(), {2}, {2, 0, 3}, {0, 1, 2, 3}]


def test_a_share_of_units_is_rounded_up_and_never_none():
    percent = [1, 5, 7, 10, 20, 29, 50, 57, 90, 100]
    for n in range(1, 301):
        # 0.07 · 100 is a little more than 7 on a computer.
        expected = [max(1, ceil(Fraction(share, 100) * n)) for share in percent]
        assert counts_of(np.array(percent) / 100, n).tolist() == expected
