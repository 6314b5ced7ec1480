"""The bag of words against autograd, and the choice of its penalty against all of them."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from heedful.evaluation.probes import bag_of_words
from heedful.evaluation.probes.bag_of_words import (
    BagOfWords,
    bags,
    fit_given,
    fit_learned,
    fitted_bag,
    token_numbers,
)
from tests.conftest import tiny_model

PENALTY = 0.01


@pytest.fixture(scope="module")
def planted():
    """Texts whose label is that of their first two tokens, among six that say nothing; three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    tokens = np.column_stack([y, y, rng.integers(3, 12, (60, 6))])
    x = np.zeros((60, 12))
    np.add.at(x, (np.arange(60)[:, None], tokens), 1 / 8)
    return csr_array(x), y


def start(x, n_classes=3):
    return BagOfWords(np.zeros((x.shape[1], n_classes)), np.zeros(n_classes), np.zeros(x.shape[1]))


def slopes(x, y, bag, learns):
    """The gradient of the penalised cross-entropy at a bag of words, by autograd."""
    g, b, s = (torch.tensor(part, requires_grad=True) for part in (bag.g, bag.b, bag.s))
    alpha = torch.from_numpy(x.toarray())
    if learns:
        alpha = alpha * s.exp() / (alpha * s.exp()).sum(dim=1, keepdim=True)
    loss = torch.nn.functional.cross_entropy(alpha @ g + b, torch.from_numpy(y)) + PENALTY / 2 * g.square().sum()
    if learns:
        loss = loss + 100 * PENALTY / 2 * s.square().sum()
    return loss.item(), torch.autograd.grad(loss, (g, b, s) if learns else (g, b))


def test_given_attention_is_fitted_to_the_minimum(planted):
    bag = fit_given(*planted, PENALTY, start(planted[0]))
    loss, gradients = slopes(*planted, bag, learns=False)
    assert max(float(part.abs().max()) for part in gradients) < 1e-4
    assert loss < slopes(*planted, start(planted[0]), learns=False)[0] - 0.3


def test_learned_attention_is_fitted_to_a_minimum_below_that_of_the_given_and_prefers_words_that_say_something(planted):
    given = fit_given(*planted, PENALTY, start(planted[0]))
    bag = fit_learned(*planted, PENALTY, start(planted[0]))
    loss, gradients = slopes(*planted, bag, learns=True)
    assert max(float(part.abs().max()) for part in gradients) < 1e-4
    assert loss < slopes(*planted, given, learns=True)[0]
    assert bag.s[:3].min() > bag.s[3:].max()
    alpha = planted[0].toarray() * np.exp(bag.s)
    logits = torch.from_numpy(alpha / alpha.sum(axis=1, keepdims=True) @ bag.g + bag.b)
    np.testing.assert_allclose(bag.probabilities(planted[0]), torch.softmax(logits, dim=1).numpy(), rtol=1e-9)


def test_the_penalty_is_the_best_on_texts_that_are_not_fitted(planted, monkeypatch):
    x, y = planted
    noisy = np.where(np.arange(60) % 3 == 0, (y + 1) % 3, y)
    monkeypatch.setattr(bag_of_words, "_WORSE", np.inf)
    chosen = fitted_bag(x, noisy, (12, 3), 5, fit_given)
    order = np.random.default_rng(5).permutation(60)
    own, others = order[:48], order[48:]
    size = (x.toarray() ** 2).sum() / 60
    losses, bag = [], start(x)
    for penalty in 10 ** np.arange(-1, -6.1, -0.5):
        bag = fit_given(x[own], noisy[own], penalty * size, bag)
        losses.append(-np.log(bag.probabilities(x[others])[np.arange(12), noisy[others]]).mean())
    best = -np.log(chosen.probabilities(x[others])[np.arange(12), noisy[others]]).mean()
    assert best == pytest.approx(min(losses), rel=1e-9)
    assert 0 < int(np.argmin(losses)) < len(losses) - 1, "neither end of the penalties"


def test_a_bag_has_the_attention_of_all_occurrences_and_one_entry_for_all_rare_tokens():
    model = tiny_model()
    documents = [model.encode(text) for text in ("good film good", "film bad story")]
    numbers = token_numbers(documents)
    good, film = (model.vocabulary.id_of(word) for word in ("good", "film"))
    assert set(numbers) == {good, film}
    x = bags(documents, [np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])], numbers).toarray()
    assert x[0, [numbers[good], numbers[film], 0]] == pytest.approx([0.7, 0.3, 0])
    assert x[1, [numbers[good], numbers[film], 0]] == pytest.approx([0, 0.1, 0.9])
