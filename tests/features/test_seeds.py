import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful
from heedful.features.card import Card
from tests.features.dictionaries import random_dictionary


def test_a_dictionary_in_another_order_and_with_other_signs_is_the_same():
    one = random_dictionary(30, 8)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    other = replace(one, W_dec=-one.W_dec[order])
    (match,) = heedful.features.stability([one, other]).matches
    np.testing.assert_allclose(match.cosines, 1, atol=1e-6)
    assert match.share_above(0.9).value == 1


def test_matches_are_one_to_one_and_their_sum_is_the_largest():
    one, other = random_dictionary(4, 3, 1), random_dictionary(4, 3, 2)
    (match,) = heedful.features.stability([one, other]).matches
    cosines = np.abs(one.directions @ other.directions.T)
    from itertools import permutations

    best = max(cosines[range(4), list(order)].sum() for order in permutations(range(4)))
    assert match.cosines.sum() == pytest.approx(best)
    assert match.mean.value == pytest.approx(best / 4)


def test_more_noise_is_less_stable_and_every_pair_is_compared():
    same = [random_dictionary(40, 16, seed, noise=noise) for seed, noise in ((1, 0.1), (2, 0.1), (3, 2.0))]
    matches = heedful.features.stability(same).matches
    assert [(match.first, match.second) for match in matches] == [(0, 1), (0, 2), (1, 2)]
    assert matches[0].mean.low > 0.95 > matches[1].mean.high
    assert matches[0].share_above(0.7).value == 1 > matches[2].share_above(0.7).high


def test_dictionaries_may_have_different_widths():
    small, large = random_dictionary(10, 8, 1), random_dictionary(25, 8, 2)
    assert len(heedful.features.stability([large, small]).matches[0].cosines) == 10


def test_the_result_is_text_and_json():
    result = heedful.features.stability([random_dictionary(10, 8, seed) for seed in (1, 2)])
    assert "dictionaries 1 and 2: mean |cos|" in repr(result)
    assert json.loads(json.dumps(result.as_dict()))["1, 2"].keys() == {"mean", "above 0.7", "above 0.9"}


def test_what_cannot_be_compared_is_refused():
    one = random_dictionary(10, 8)
    with pytest.raises(heedful.HeedfulError, match="at least two dictionaries"):
        heedful.features.stability([one])
    with pytest.raises(heedful.HeedfulError, match="number 2 is 'a'"):
        heedful.features.stability([one, "a"])
    with pytest.raises(heedful.HeedfulError, match="different layers"):
        heedful.features.stability([one, random_dictionary(10, 8, card=Card("topk", layer=3))])
