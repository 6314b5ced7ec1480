import numpy as np
import pytest
import torch

from heedful.evaluation.probes.ascent import Ascent, ascend
from heedful.theory.attention_polytope import strongest_adversary
from tests.evaluation.probes.models import divergence

RNG = np.random.default_rng(0)
SHARES = np.stack([RNG.dirichlet(np.ones(6)), np.append(RNG.dirichlet(np.ones(4)), [0.0, 0.0])])
GAIN, LOGITS = RNG.normal(size=(2, 2, 6)), RNG.normal(size=(2, 2))


def changes(ends):
    logits = LOGITS[:, None] + np.einsum("xcw,xsw->xsc", GAIN, ends - SHARES[:, None])
    p, own = (torch.from_numpy(z).softmax(-1).numpy() for z in (logits, LOGITS[:, None]))
    return np.abs(p - own).sum(axis=-1) / 2


def test_every_start_ends_at_attention_over_the_words_of_its_text():
    ends = ascend(SHARES, GAIN, LOGITS, 0.01, Ascent(3, 20), 0)
    assert ends.shape == (2, 3, 6)
    assert ends.sum(axis=-1) == pytest.approx(1)
    assert (ends[1, :, 4:] == 0).all()
    assert (ends[1, :, :4] > 0).all()


def test_the_same_seed_gives_the_same_and_another_another():
    first, same, other = (ascend(SHARES, GAIN, LOGITS, 0.01, Ascent(2, 5), seed) for seed in (0, 0, 1))
    assert first.tobytes() == same.tobytes() != other.tobytes()


def test_a_long_search_nearly_finds_the_exact_adversary_and_no_more():
    ends = ascend(SHARES, GAIN, LOGITS, 0.05, Ascent(8, 600, 0.1), 0)
    kept = changes(ends) <= 0.05
    for row in range(2):
        n = 6 if row == 0 else 4
        g = (GAIN[row, 0] - GAIN[row, 1])[:n]
        margin, middle = LOGITS[row, 0] - LOGITS[row, 1], SHARES[row, :n] @ g
        p = 1 / (1 + np.exp(-margin))
        low, high = (np.log(x / (1 - x)) - margin + middle for x in (p - 0.05, p + 0.05))
        best, _ = strongest_adversary(SHARES[row, :n], g, low, high)
        reached = divergence(ends[row, kept[row]], SHARES[row]).max(initial=0)
        assert 0.7 * best <= reached <= best + 1e-9


def test_the_penalty_brings_the_output_back():
    free = changes(ascend(SHARES, 50 * GAIN, LOGITS, 0.999, Ascent(4, 200), 0))
    bound = changes(ascend(SHARES, GAIN, LOGITS, 0.01, Ascent(4, 200), 0))
    assert free.max() > 0.1
    assert np.median(bound) < 0.02


def test_a_single_logit_is_the_difference_of_two():
    single = ascend(SHARES, GAIN[:, 1:] - GAIN[:, :1], LOGITS[:, 1:] - LOGITS[:, :1], 0.01, Ascent(2, 20), 0)
    assert single == pytest.approx(ascend(SHARES, GAIN, LOGITS, 0.01, Ascent(2, 20), 0), abs=1e-3)
