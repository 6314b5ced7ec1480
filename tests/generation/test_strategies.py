import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import chisquare
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from heedful.errors import BadInput
from heedful.generation.strategies import Greedy, Nucleus, Sampling, TopK, draw_token
from tests.families import build


def logits_of(seed=0, n=300):
    return 3 * np.random.default_rng(seed).standard_normal(n)


def warped(logits, *warpers):
    """The law that transformers draws from."""
    scores = torch.from_numpy(logits)[None]
    for warper in warpers:
        scores = warper(None, scores)
    return torch.softmax(scores[0], dim=-1).numpy()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("strategy", "warpers"),
    [
        (Sampling(), []),
        (Sampling(0.3), [TemperatureLogitsWarper(0.3)]),
        (TopK(1), [TopKLogitsWarper(1)]),
        (TopK(50, 1.7), [TemperatureLogitsWarper(1.7), TopKLogitsWarper(50)]),
        (TopK(9999), []),
        (Nucleus(), [TopPLogitsWarper(0.9)]),
        (Nucleus(0.5, 2.0), [TemperatureLogitsWarper(2.0), TopPLogitsWarper(0.5)]),
        (Nucleus(1e-9), [TopPLogitsWarper(1e-9)]),
        (Nucleus(1.0), []),
    ],
)
def test_the_kept_set_and_the_law_are_those_of_transformers(strategy, warpers, seed):
    logits = logits_of(seed)
    law, expected = strategy.law(logits), warped(logits, *warpers)
    assert (np.flatnonzero(law) == np.flatnonzero(expected)).all()
    assert np.allclose(law, expected, atol=1e-12)


def test_greedy_keeps_the_most_likely_token_and_the_first_of_equals():
    assert Greedy().law(np.array([0.0, 2.0, 2.0, 1.0])).tolist() == [0, 1, 0, 0]


def test_top_k_keeps_exactly_k_of_equals():
    assert np.flatnonzero(TopK(2).law(np.array([1.0, 0.0, 1.0, 1.0]))).tolist() == [0, 2]


def test_the_nucleus_is_the_smallest_set_of_its_mass():
    probabilities = np.array([0.1, 0.5, 0.15, 0.25])
    law = Nucleus(0.7).law(np.log(probabilities))
    assert np.allclose(law, [0, 2 / 3, 0, 1 / 3])
    assert np.flatnonzero(Nucleus(0.76).law(np.log(probabilities))).tolist() == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [Sampling(0.8), TopK(20), Nucleus(0.8, 1.3)])
def test_drawn_tokens_have_the_stated_law(strategy):
    # The logits of a model, not of a formula; 10⁵ draws, bins of at least 5 expected draws.
    model = build("gpt2")
    logits = model(["the film was good"])[0]
    law, rng, n = strategy.law(logits), np.random.default_rng(0), 100_000
    counts = np.bincount([draw_token(law, rng) for _ in range(n)], minlength=len(law))
    assert counts[law == 0].sum() == 0
    often = law * n >= 5
    observed, expected = counts[often], n * law[often]
    if not often.all() and law[~often].sum():
        observed, expected = np.append(observed, counts[~often].sum()), np.append(expected, n * law[~often].sum())
    assert len(observed) > 3
    assert chisquare(observed, expected).pvalue > 1e-3
    # The test can fail: the law at another temperature is refused.
    other = softmax(logits * 1.05) * (law > 0)
    assert chisquare(counts[often], counts[often].sum() * other[often] / other[often].sum()).pvalue < 1e-3


def test_a_token_of_probability_zero_is_never_drawn():
    class Edge(np.random.Generator):
        def random(self):
            return 0.0

    assert draw_token(np.array([0.0, 0.0, 0.4, 0.6, 0.0]), Edge(np.random.PCG64(0))) == 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Sampling(0.0), "temperature must be a number above 0; 0 was given"),
        (lambda: Nucleus(0.9, float("nan")), "temperature must be a number above 0; nan was given"),
        (lambda: TopK(0), "k is the number of tokens that are kept, at least 1; 0 was given"),
        (lambda: Nucleus(0.0), "p is the probability that is kept, above 0 and at most 1; 0 was given"),
        (lambda: Nucleus(1.1), "p is the probability that is kept, above 0 and at most 1; 1.1 was given"),
    ],
)
def test_settings_without_a_law_are_refused(make, sentence):
    with pytest.raises(BadInput, match=sentence):
        make()
