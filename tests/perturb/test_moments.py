"""Lines from few masks: right however bad the guess, with intervals that hold, and certificates that are true."""

from math import comb

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.perturb.moments import Moments
from heedful.perturb.size_law import KnownLaw
from heedful.perturb.surrogate import kernel


@pytest.fixture(scope="module")
def texts(paper):
    rng = np.random.default_rng(1)
    frequent = paper.vocabulary.words[2:3000]
    return [" ".join(rng.choice(frequent, size=size)) for size in (20, 40, 60, 90, 120)]


def everything(d):
    return (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1


def rough(keep):
    """A function that is no line: products, a bend in the size, a sign that turns."""
    z = keep.astype(float)
    return z @ np.arange(-2, z.shape[1] - 2) + 3 * z[:, 0] * z[:, 1] - np.sqrt(1 + z.sum(axis=1)) + z[:, 2] * z[:, 4]


@pytest.mark.parametrize("slopes", [None, "nonsense", "good"])
@pytest.mark.parametrize("kind", ["lime", "shapley"])
def test_the_mean_of_many_pairs_is_the_weighted_regression_over_all_sets(kind, slopes):
    d, width, ridge = 7, 25.0, 1.0
    keep = everything(d)
    f, size = rough(keep), keep.sum(axis=1)
    n_of_size = np.bincount(size, minlength=d + 1)[size]
    law = KnownLaw.lime(d, 500, width, ridge) if kind == "lime" else KnownLaw.shapley(d)
    mass = law.mass[size] / n_of_size
    if kind == "lime":
        of_size = np.where(size == d, 1.0, 499 / d / n_of_size) * kernel(keep, width)
        assert np.allclose(mass, of_size)
        x = keep - mass @ keep / mass.sum()
        truth = np.linalg.solve(
            x.T @ (x * mass[:, None]) + ridge * np.eye(d), x.T @ (mass * (f - mass @ f / mass.sum()))
        )
    else:
        # Shapley values by their definition: every set without a unit, and with it.
        truth = np.zeros(d)
        for j in range(d):
            without = np.flatnonzero(~keep[:, j])
            s = size[without]
            weight = np.array([1 / (d * comb(d - 1, int(k))) for k in s])
            truth[j] = weight @ (f[without + 2**j] - f[without])
    guess = {None: None, "nonsense": np.random.default_rng(3).normal(size=(3, d)), "good": np.tile(truth, (3, 1))}[
        slopes
    ]
    moments = Moments(law, (float(f[0]), float(f[-1])), guess, efficient=kind == "shapley")
    pairs = law.draw(20_000, np.random.default_rng(0))
    values = f[(pairs * 2 ** np.arange(d)).sum(axis=2)]
    estimate = moments.fit(pairs, values)
    assert np.abs(estimate.scores - truth).max() < 5 * estimate.deviations.max()
    assert estimate.deviations.max() < 0.02 * np.abs(truth).max()


def test_a_ridge_on_the_intercept_is_that_of_equation_16():
    d, width, ridge = 7, 25.0, 20.0
    keep = everything(d)
    f, size = 5 + rough(keep), keep.sum(axis=1)
    n_of_size = np.bincount(size, minlength=d + 1)[size]
    mass = np.where(size == d, 1.0, 499 / d / n_of_size) * kernel(keep, width)
    x = np.hstack([np.ones((len(keep), 1)), keep])
    truth = np.linalg.solve(x.T @ (x * mass[:, None]) + ridge * np.eye(d + 1), x.T @ (mass * f))[1:]
    law = KnownLaw.lime(d, 500, width, ridge, ridge)
    pairs = law.draw(20_000, np.random.default_rng(0))
    values = f[(pairs * 2 ** np.arange(d)).sum(axis=2)]
    estimate = Moments(law, (float(f[0]), float(f[-1])), None, efficient=False).fit(pairs, values)
    assert np.abs(estimate.scores - truth).max() < 5 * estimate.deviations.max()
    assert estimate.deviations.max() < 0.02 * np.abs(truth).max()


@pytest.mark.parametrize("guess", ["nonsense", "rough"])
@pytest.mark.parametrize("kind", ["lime", "shapley"])
def test_few_pairs_and_a_bad_guess_do_not_bias_the_strongest(kind, guess):
    """The scores of a sum are its terms; there are too many units for a regression."""
    d, n_pairs, rng = 60, 32, np.random.default_rng(5)
    weights = rng.normal(size=d) * (1 + 4 * (np.arange(d) < 5))
    law = KnownLaw.lime(d, 5000, 25.0, 0.0) if kind == "lime" else KnownLaw.shapley(d)
    slopes = rng.normal(size=(3, d)) * 2 + (0 if guess == "nonsense" else weights)
    top_scores, inside = [], []
    for seed in range(200):
        pairs = law.draw(n_pairs, np.random.default_rng(seed))
        # A line is its own LIME without a ridge and its own Shapley value, whatever the guess makes of it.
        estimate = Moments(law, (0.0, float(weights.sum())), slopes, kind == "shapley").fit(pairs, pairs @ weights)
        top_scores.append(estimate.scores[:5])
        inside.append(np.abs(estimate.scores - weights)[:5] <= estimate.as_line().half_widths[:5])
    mean, error = np.mean(top_scores, axis=0), np.std(top_scores, axis=0, ddof=1) / np.sqrt(len(top_scores))
    assert (np.abs(mean - weights[:5]) < 4 * error).all()
    assert error.max() < 0.07 * np.abs(weights).max()
    assert np.mean(inside) > 0.92


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [50, 90])
@pytest.mark.parametrize(("method", "exact"), [("lime", "lime-exact"), ("shapley-sampled", "shapley-exact")])
@pytest.mark.parametrize("absence", ["replace", "mask"])
def test_few_masks_give_intervals_that_cover_the_exact_values(paper, texts, method, exact, n_samples, absence):
    same = {"n_samples": n_samples} if method == "lime" else {}
    truths = heedful.explain(paper, texts, exact, target=1, absence=absence, **same)
    inside = []
    for seed in range(12):
        explanations = heedful.explain(paper, texts, method, target=1, n_samples=n_samples, seed=seed, absence=absence)
        for explanation, truth in zip(explanations[1:], truths[1:], strict=True):
            assert explanation.facts["masks"] <= n_samples
            inside.append(np.abs(explanation.scores - truth.scores) <= explanation.error + truth.error)
    inside = np.concatenate(inside)
    assert len(inside) > 3000
    assert 0.92 <= inside.mean() <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize(("method", "exact"), [("lime", "lime-exact"), ("shapley-sampled", "shapley-exact")])
def test_certified_signs_and_tops_are_true(paper, texts, method, exact):
    truths = heedful.explain(paper, texts, exact, target=1)
    for until in ("signs", "top"):
        explanations = heedful.explain(
            paper, texts, method, target=1, n_samples="auto", until=until, budget=4000, tolerance=0.02
        )
        for explanation, truth in zip(explanations, truths, strict=True):
            top = np.argsort(-np.abs(explanation.scores), kind="stable")[:5]
            if until == "signs" and explanation.facts["certain_signs"] == 5:
                assert (np.sign(explanation.scores[top]) == np.sign(truth.scores[top])).all()
            if until == "top" and explanation.facts["certain_top"] == 5:
                assert set(top) == set(np.argsort(-np.abs(truth.scores))[:5])
            if until == "signs":
                assert (
                    explanation.facts["certain_signs"] == 5
                    or "of zero" in explanation.notes[-1]
                    or "either" in explanation.notes[-1]
                )


def test_a_certificate_costs_a_small_part_of_5000_masks(paper, texts):
    explanations = heedful.explain(paper, texts, "lime", target=1, n_samples="auto", until="signs")
    assert np.median([explanation.facts["masks"] for explanation in explanations]) < 500
    assert all("certain at 95%" in explanation.notes[-1] for explanation in explanations)


def test_of_few_units_every_mask_is_evaluated(tiny):
    explanation = heedful.explain(
        tiny, "good film was very bad", "shapley-sampled", target=1, n_samples="auto", until="signs"
    )
    assert explanation.facts["masks"] == 32
    assert (explanation.error == 0).all()
    assert explanation.facts["certain_signs"] == 5
    assert "Every mask was evaluated" in explanation.notes[-1]


def test_a_budget_is_kept(paper, texts):
    explanation = heedful.explain(paper, texts[0], "lime", n_samples="auto", until="signs", budget=40, tolerance=1e-9)
    assert explanation.facts["masks"] <= 40
    with pytest.raises(BadInput, match="at least 34 masks"):
        heedful.explain(paper, texts[0], "lime", n_samples="auto", until="signs", budget=20)


def test_a_word_that_does_nothing_has_no_sign():
    model = heedful.wrap(lambda texts: [[0.0, float("good" in t)] for t in texts])
    text = "good " + " ".join(f"w{n}" for n in range(11))
    explanation = heedful.explain(
        model, text, "shapley-sampled", target=1, n_samples="auto", until="signs", budget=5000
    )
    assert explanation.top(1)[0][0] == "good"
    assert "“good”" in explanation.notes[-1]
    assert "of zero" in explanation.notes[-1]
