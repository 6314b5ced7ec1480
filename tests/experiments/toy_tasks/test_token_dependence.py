"""The score of planted maps, and the formula against all pairs of sequences."""

import pytest
import torch

from heedful.errors import BadInput
from heedful.experiments.toy_tasks.token_dependence import token_dependence


def random_maps(n, length, seed=0, sharpness=2.0):
    rng = torch.Generator().manual_seed(seed)
    return (sharpness * torch.randn(n, length, length, generator=rng)).softmax(dim=-1)


def by_equal_tokens(queries, keys, advantage):
    return (advantage * (queries[:, :, None] == keys[:, None, :])).softmax(dim=-1)


def test_it_is_the_mean_over_all_pairs():
    maps = random_maps(7, 4).double()
    apart = [(maps[s] - maps[t]).square().sum() / 2 for s in range(7) for t in range(7) if s != t]
    from_uniform = [(attention - 0.25).square().sum() for attention in maps]
    expected = torch.stack(apart).mean() / torch.stack(from_uniform).mean()
    assert token_dependence(maps) == pytest.approx(float(expected), rel=1e-12)


def test_one_map_for_every_sequence_scores_zero():
    assert token_dependence(random_maps(1, 6).expand(50, 6, 6)) == 0.0
    assert token_dependence(torch.full((50, 6, 6), 1 / 6)) == 0.0


def test_rounding_is_no_dependence():
    maps = torch.full((50, 6, 6), 1 / 6)
    maps[::2, 0, 0] += 1e-7
    assert token_dependence(maps) == 0.0


def test_unrelated_maps_score_one():
    assert token_dependence(random_maps(3_000, 6)) == pytest.approx(1.0, abs=0.01)


def test_weight_on_equal_tokens_scores_one_between_sequences_and_less_within_them():
    tokens = torch.randint(15, (3_000, 10), generator=torch.Generator().manual_seed(1))
    crossed = by_equal_tokens(tokens, tokens.roll(1, dims=0), advantage=2.0)
    assert token_dependence(crossed) == pytest.approx(1.0, abs=0.01)
    assert token_dependence(by_equal_tokens(tokens, tokens, advantage=2.0)) < 0.5


def test_a_planted_share_is_found():
    fixed, free = random_maps(1, 6, seed=4), random_maps(5_000, 6, seed=5)
    size = (fixed - 1 / 6).square().sum()
    # Free maps have a uniform mean, so squares of the two parts add.
    spread = (free - 1 / 6).square().sum(dim=(1, 2)).mean()
    scores = []
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        scores.append(token_dependence((1 - share) * fixed + share * free))
        expected = share**2 * spread / (share**2 * spread + (1 - share) ** 2 * size)
        assert scores[-1] == pytest.approx(float(expected), abs=0.02)
    assert scores == sorted(scores)


def test_one_sequence_has_nothing_to_be_compared_with():
    with pytest.raises(BadInput, match="at least 2 sequences; 1 was given"):
        token_dependence(torch.full((1, 3, 3), 1 / 3))
