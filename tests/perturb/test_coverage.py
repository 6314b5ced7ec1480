"""Do 95 % intervals hold 95 % of the exact values?"""

import numpy as np
import pytest

import heedful


@pytest.fixture(scope="module")
def texts(paper):
    rng = np.random.default_rng(0)
    frequent = paper.vocabulary.words[2:3000]
    return [" ".join(rng.choice(frequent, size=size)) for size in (15, 25, 35, 45, 60, 80)]


CASES = [
    *(("lime", "lime-exact", design, n) for design in ("independent", "paired", "stratified") for n in (250, 1000)),
    *(
        ("shapley-sampled", "shapley-exact", design, 1000)
        for design in ("independent", "paired", "stratified", "walks")
    ),
    ("shapley-sampled", "shapley-exact", "stratified", 300),
    ("shapley-sampled", "shapley-exact", "walks", 4000),
]


@pytest.mark.parametrize(("sampled", "exact", "design", "n_samples"), CASES)
def test_intervals_cover_the_exact_values(paper, texts, sampled, exact, design, n_samples):
    same = {"n_samples": n_samples} if sampled == "lime" else {}
    truths = heedful.explain(paper, texts, exact, target=1, **same)
    inside = []
    for seed in range(8):
        explanations = heedful.explain(paper, texts, sampled, target=1, n_samples=n_samples, design=design, seed=seed)
        for explanation, truth in zip(explanations, truths, strict=True):
            inside.append(np.abs(explanation.scores - truth.scores) <= explanation.error + truth.error)
    inside = np.concatenate(inside)
    assert len(inside) >= 2000
    assert 0.92 <= inside.mean() <= 0.98
