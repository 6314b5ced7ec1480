"""The additive game against brute force over all subsets, and against softmax attention."""

import numpy as np
import pytest
import torch

from heedful.theory.game import Games, expectations, sum_by_index, sum_by_product
from tests.theory.test_exact import all_subsets, random_game


def test_both_ways_to_sum_over_units_agree():
    rng = np.random.default_rng(0)
    x, holder = torch.from_numpy(rng.standard_normal((3, 4, 9))), torch.from_numpy(rng.integers(-1, 5, (3, 9)))
    assert torch.allclose(sum_by_index(x, holder, 5), sum_by_product(x, holder, 5), atol=1e-14)


def test_conditional_expectations_at_any_probability():
    game = random_game(7, 2, 4.0)
    z, f = all_subsets(game)
    for p in (0.01, 0.4, 0.97):
        mass = np.prod(np.where(z == 1, 1 - p, p), axis=1)
        point = torch.tensor([p], dtype=torch.float64)
        one, none = torch.ones(2, 1, 1, dtype=torch.float64), torch.zeros(2, 1, 1, dtype=torch.float64)
        one[1], none[1] = 0.0, 1.0
        (kept, gone), mean = expectations(game, point, one, none)
        kept, gone, mean = kept[0], gone[0], mean[0]
        assert np.allclose(kept, [(f * mass)[z[:, j] == 1].sum() / (1 - p) for j in range(7)], atol=1e-11)
        assert np.allclose(gone, [(f * mass)[z[:, j] == 0].sum() / p for j in range(7)], atol=1e-11)
        assert float(mean[0]) == pytest.approx(f @ mass, abs=1e-12)


def test_a_game_is_softmax_attention_with_some_tokens_replaced():
    rng = np.random.default_rng(1)
    s, w, s_h, w_h = torch.from_numpy(rng.standard_normal((4, 1, 2, 6)))
    unit_of = np.array([[-1, 0, 1, 0, 2, -1]])
    z, f = all_subsets(Games.of(s, w, s_h, w_h, unit_of))
    for keep, value in zip(z, f, strict=True):
        kept = torch.tensor([unit < 0 or keep[unit] == 1 for unit in unit_of[0]])
        scores, values = torch.where(kept, s[0], s_h[0]), torch.where(kept, w[0], w_h[0])
        assert float((scores.softmax(dim=-1) * values).sum(dim=-1).mean()) == pytest.approx(value, abs=1e-12)
