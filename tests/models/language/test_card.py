from dataclasses import dataclass
from math import exp, isnan

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from heedful.datasets import Example
from heedful.models.language.card import publish_gpt2, ratio_of_sums
from heedful.models.language.training import train_gpt2
from heedful.models.load import load
from tests.models.language.test_training import QUICK, SMALL
from tests.models.test_training import Leaky, Toy


@dataclass(frozen=True)
class Short(Toy):
    """As Toy, with test texts of a few tokens, one of them twice."""

    def examples(self, split):
        texts = ("a b", "plot", "", "plot")
        return [Example(text, 0) for text in texts] if split == "test" else Toy.examples(self, split)


def test_the_card_has_the_perplexity_of_the_written_file(tmp_path):
    model, epochs = train_gpt2(Short(), SMALL, QUICK, tmp_path)
    card = publish_gpt2(model, Short(), epochs, "heedful train short", tmp_path)
    shipped, losses, n = load(str(tmp_path)), [], []
    end = shipped.vocabulary.special[0]
    for text in ("a b", "plot", ""):
        ids = torch.tensor([[end, *shipped.vocabulary.encode(text), end]])
        losses.append(float(cross_entropy(shipped.network(ids[:, :-1])[0], ids[0, 1:], reduction="sum").detach()))
        n.append(ids.shape[1] - 1)
    assert max(n) <= SMALL.T_max
    assert card.n_test == 3
    assert card.perplexity[0] == pytest.approx(exp(sum(losses) / sum(n)), rel=1e-6)
    assert card.perplexity[1] < card.perplexity[0] < card.perplexity[2]
    text = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert f"**{card.summary}**" in text
    assert card.sha256 in text
    assert card.fingerprint == shipped.fingerprint
    assert f"epoch {card.best_epoch}, perplexity {min(epoch.perplexity for epoch in epochs):.2f}" in text


def test_without_a_new_test_text_the_card_says_so(tmp_path):
    model, epochs = train_gpt2(Leaky(), SMALL, QUICK, tmp_path)
    card = publish_gpt2(model, Leaky(), epochs, "heedful train leaky", tmp_path)
    assert (card.n_test, card.summary) == (0, "test perplexity not measured")


def test_the_interval_of_a_ratio_covers_it_in_95_of_100_samples():
    rng, n, covered = np.random.default_rng(0), 200, 0
    for _ in range(1_000):
        sizes = rng.integers(5, 50, n)
        _, low, high = ratio_of_sums(3.0 * sizes + rng.normal(0, 2, n) * np.sqrt(sizes), sizes)
        covered += low <= 3.0 <= high
    assert 930 <= covered <= 968


def test_one_text_has_no_interval():
    value, low, high = ratio_of_sums(np.array([6.0]), np.array([3]))
    assert value == 2
    assert isnan(low)
    assert isnan(high)
