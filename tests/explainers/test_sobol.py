from itertools import product

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.explainers import configure
from heedful.explainers.run import run_explainer
from heedful.explainers.sobol import Winding
from heedful.models.budget import Budget
from heedful.models.question import ask
from heedful.target import Target
from tests.conftest import WORDS, tiny_model
from tests.explainers.test_exact import forwards
from tests.families import build

TEXT = "good film was good but the plot was dull"
LONG = "good film was very bad but the plot was not dull and"


def walsh(z, f):
    """Var f and both indices from the orthogonal expansion of f over all subsets, not from differences."""
    signs = 2 * z - 1
    parts = {
        chosen: np.mean(f * np.prod(np.where(chosen, signs, 1), axis=1)) ** 2
        for chosen in product([0, 1], repeat=z.shape[1])
        if any(chosen)
    }
    variance, d = sum(parts.values()), z.shape[1]
    total = [sum(part for chosen, part in parts.items() if chosen[j]) / variance for j in range(d)]
    alone = [parts[tuple(int(k == j) for k in range(d))] / variance for j in range(d)]
    return variance, np.array(total), np.array(alone)


@pytest.mark.parametrize("unit", ["word", "type"])
def test_a_short_text_is_explained_without_sampling(tiny, unit):
    z, f = forwards(tiny, TEXT, unit, 1)
    variance, total, alone = walsh(z, f)
    for order, expected in (("total", total), ("first", alone)):
        explanation = heedful.explain(tiny, TEXT, "sobol", target=1, unit=unit, order=order)
        assert np.allclose(explanation.scores, expected, atol=1e-9)
        assert (explanation.error == 0).all()
        assert explanation.facts["masks"] == len(z)
        assert explanation.facts["variance"] == pytest.approx(variance)
        assert explanation.facts["additive_share"] == pytest.approx(alone.sum())
    assert alone.sum() <= 1 <= total.sum()


@pytest.mark.parametrize("family", ["bert", "gpt2", "transformer", "torch"])
def test_indices_are_those_of_brute_force_on_every_kind_of_model(family):
    model, text = build(family), "the film was not good"
    document = model.encode(text)
    unit_of, d = document.unit_of("word"), document.n_units("word")
    z = np.array(list(product([0, 1], repeat=d)))
    keep = (z[:, unit_of] == 1) | (unit_of < 0)
    explanation = heedful.explain(model, text, "sobol", target=0)
    f = model.masked(document, Target(0, explanation.target.name), keep, "replace")
    assert np.allclose(explanation.scores, walsh(z, f)[1], atol=1e-6)


def enumerated(model, text):
    """Both indices of a text of up to 12 words by f on all masks, each expectation written out."""
    document = model.encode(text)
    d = document.n_units("word")
    z = np.array(list(product([False, True], repeat=d)))
    f = model.masked(document, Target(1, "positive"), np.concatenate([z[:, :1] | True, z], axis=1), "replace")
    value = f.reshape((2,) * d)
    total = np.array([value.var(axis=j).mean() for j in range(d)]) / f.var()
    alone = np.array([[f[z[:, j]].mean(), f[~z[:, j]].mean()] for j in range(d)]).var(axis=1) / f.var()
    return {"total": total, "first": alone, "variance": f.var()}


@pytest.fixture(scope="module")
def truth(tiny):
    return enumerated(tiny, LONG)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["total", "first"])
@pytest.mark.parametrize("n_samples", [240, 600, 1900])
def test_intervals_cover_the_exact_indices(paper, order, n_samples):
    inside = []
    for model, text in (
        *((tiny_model(seed), LONG) for seed in range(4)),
        (paper, "this film is a waste of time . the plot makes"),
        (paper, "i did not like it but the actors were not bad"),
    ):
        expected = enumerated(model, text)[order]
        for seed in range(15):
            settings = {"target": 1, "order": order, "n_samples": n_samples, "seed": seed}
            explanation = heedful.explain(model, text, "sobol", **settings)
            inside.append(np.abs(explanation.scores - expected) <= explanation.error)
            assert explanation.error.min() > 0
    inside = np.concatenate(inside)
    assert len(inside) >= 1000
    assert 0.92 <= inside.mean() <= 0.98


@pytest.mark.slow
def test_the_variance_is_unbiased_and_precise(tiny, truth):
    runs = [heedful.explain(tiny, LONG, "sobol", target=1, n_samples=240, seed=seed) for seed in range(200)]
    result = np.array([run.facts["variance"] for run in runs]) / truth["variance"]
    assert abs(result.mean() - 1) < 4 * result.std() / 200**0.5
    # The variance of 240 answers to independent masks scatters by more than (2/239)^½ if it is like a normal law's.
    assert result.std() < (2 / 239) ** 0.5


@pytest.mark.slow
def test_the_rounds_beat_jansen_s_pairs_of_masks(tiny, truth):
    document, rng, plain = tiny.encode(LONG), np.random.default_rng(0), []
    for _ in range(60):
        # Half of these masks are asked twice, so that as many distinct ones are asked as below.
        n = 960 // 8
        a, b = rng.random((2, n, 12)) < 0.5
        mixed = np.where(np.eye(12, dtype=bool), b[:, None], a[:, None]).reshape(-1, 12)
        keep = np.concatenate([a, b, mixed])
        f = tiny.masked(document, Target(1, "positive"), np.concatenate([keep[:, :1] | True, keep], axis=1), "replace")
        one, two = f[:n], f[2 * n :].reshape(n, 12)
        plain.append(((one[:, None] - two) ** 2).mean(axis=0) / 2 / f[: 2 * n].var(ddof=1))
    ours = [heedful.explain(tiny, LONG, "sobol", target=1, n_samples=960, seed=s).scores for s in range(60)]
    error = [np.mean((np.array(result) - truth["total"]) ** 2) for result in (ours, plain)]
    assert error[0] < error[1] / 4


def additive(texts):
    weights = dict.fromkeys(WORDS, 0.0) | {"good": 3.0, "film": 1.0, "bad": -2.0}
    scores = [sum(weights.get(word, 0.0) for word in text.split()) for text in texts]
    return np.stack([np.zeros(len(texts)), scores], axis=1)


@pytest.mark.parametrize("order", ["total", "first"])
@pytest.mark.parametrize("text", ["good film bad", "good film bad " + "the " * 17])
def test_a_sum_over_words_shares_its_variance_by_their_squares(text, order):
    model = heedful.wrap(additive, classes=["no", "yes"])
    explanation = heedful.explain(model, text, "sobol", target=1, order=order, n_samples=1000)
    assert np.allclose(explanation.scores[:3], np.array([9, 1, 4]) / 14, atol=1e-9)
    assert np.allclose(explanation.scores[3:], 0)
    assert np.allclose(explanation.error, 0, atol=1e-9)


def test_what_units_do_jointly_counts_in_the_total_alone():
    def one_of_two(texts):
        return np.array([[0.0, float(("good" in text) != ("bad" in text))] for text in texts])

    model = heedful.wrap(one_of_two, classes=["no", "yes"])
    text = "good bad " + "the " * 12
    total, alone = (heedful.explain(model, text, "sobol", target=1, order=order) for order in ("total", "first"))
    assert np.allclose(total.scores[:2], 1, atol=0.02)
    assert np.allclose(alone.scores, 0, atol=0.01)
    assert (np.abs(alone.scores) <= alone.error).all()
    assert total.facts["additive_share"] < 0.02
    assert total.notes == ()
    few = heedful.explain(model, text, "sobol", target=1, n_samples=200)
    assert "intervals may be too narrow" in few.notes[-1]


@pytest.mark.parametrize("text", ["good film", "good film " * 10])
def test_a_constant_model_gets_zeros_and_a_note(text):
    model = heedful.wrap(lambda texts: np.full((len(texts), 2), 0.25), classes=["no", "yes"])
    explanation = heedful.explain(model, text, "sobol")
    assert (explanation.scores == 0).all()
    assert (explanation.error == 0).all()
    assert "no variance" in explanation.notes[-1]


def test_masks_wind_to_the_complement_and_back():
    winding = Winding.draw(7, 5, np.random.default_rng(0))
    masks = winding.masks(0, 5).reshape(5, 14, 7)
    switched = masks ^ np.roll(masks, -1, axis=1)
    assert (switched.sum(axis=2) == 1).all()
    assert (masks[:, 7:] == ~masks[:, :7]).all()
    assert (switched[:, :7].sum(axis=1) == 1).all()
    slopes = np.random.default_rng(1).standard_normal((5, 7))
    expected = ((masks - 0.5) * slopes[:, None]).sum(axis=2)
    assert np.allclose(winding.line(slopes), expected)
    there, back = winding.differences(expected)
    assert np.allclose(there, slopes)
    assert np.allclose(back, slopes)


def test_too_few_samples_are_refused(tiny):
    with pytest.raises(BadInput, match="sobol needs at least 120 samples for 12 words; n_samples is 119."):
        heedful.explain(tiny, LONG, "sobol", n_samples=119)
    with pytest.raises(BadInput, match="2 to 10,000,000"):
        heedful.explain(tiny, LONG, "sobol", n_samples=1)


@pytest.mark.parametrize("n_samples", [2400, 5000])
def test_a_run_that_the_user_stops_is_the_run_of_the_rounds_that_were_done(tiny, n_samples):
    def stopping(after):
        def stop(done, _):
            if done >= after:
                raise KeyboardInterrupt

        question = ask(tiny, [LONG], 1, budget=Budget(memory=1, watch=stop))
        return run_explainer(configure("sobol", {"n_samples": n_samples}), question)[0]

    explanation = stopping(500)
    assert explanation.notes[-1].startswith(f"Stopped by the user after {explanation.facts['masks']} of ")
    shorter = [heedful.explain(tiny, LONG, "sobol", target=1, n_samples=24 * n) for n in range(20, 30)]
    assert (
        sum(
            np.allclose(explanation.scores, run.scores) and np.allclose(explanation.error, run.error) for run in shorter
        )
        == 1
    )
    with pytest.raises(KeyboardInterrupt):
        stopping(100)
