import numpy as np
import pytest
from scipy.optimize import least_squares

import heedful
from heedful.errors import BadInput

REPLACE, MASK = "replace", "mask"


def bag(n_items, seed, absence, n_heads=1, spread=1.5):
    """Attention pooling with one score and value for whatever is gone, or with one item that never goes."""
    rng = np.random.default_rng(seed)
    s, v = spread * rng.normal(size=(n_heads, n_items)), rng.normal(size=(n_heads, n_items))
    s_rest, v_rest = rng.normal(size=(n_heads, 1)), rng.normal(size=(n_heads, 1))
    if absence == REPLACE:
        gone = np.repeat(s_rest, n_items, axis=1), np.repeat(v_rest, n_items, axis=1)
        return heedful.Bag(s, v, gone_scores=gone[0], gone_values=gone[1]), s, v, v_rest
    names = [*(f"item-{number}" for number in range(n_items)), None]
    return heedful.Bag(np.hstack([s, s_rest]), np.hstack([v, v_rest]), names=names), s, v, v_rest


@pytest.mark.parametrize("absence", [REPLACE, MASK])
@pytest.mark.parametrize("n_items", [3, 9, 30])
def test_of_one_head_the_surrogate_is_the_model(n_items, absence):
    model, s, v, v_rest = bag(n_items, n_items, absence)

    def shown(show):
        return heedful.explain(model, model.text, "slalom", absence=absence, show=show)

    for show, truth in (("value", v[0]), ("importance", s[0] - s[0].mean())):
        assert np.allclose(shown(show).scores, truth, atol=1e-6)
        assert shown(show).error.max() < 1e-6
    for show, exact in (("shapley", "shapley-exact"), ("lime", "lime-exact")):
        truth = heedful.explain(model, model.text, exact, absence=absence)
        assert np.abs(shown(show).scores - truth.scores).max() <= 1e-6
        assert np.abs(shown(show).scores - truth.scores).max() <= shown(show).error.max() + truth.error.max()
    linearised = shown("linearised")
    assert linearised.scores.sum() == pytest.approx(linearised.output - v_rest[0, 0], abs=1e-6)
    papers = (v[0] - v_rest[0, 0]) * np.exp(s[0])
    assert np.allclose(linearised.scores / linearised.scores.sum(), papers / papers.sum(), atol=1e-6)
    assert linearised.facts["r_squared"] == pytest.approx(1, abs=1e-9)
    assert linearised.facts["empty"] == pytest.approx(v_rest[0, 0], abs=1e-6)
    assert linearised.facts["importance_range"] == pytest.approx(np.ptp(s[0]), abs=1e-6)


def test_a_game_of_any_replacements_has_the_surrogate_s_shapley_values():
    rng = np.random.default_rng(0)
    s, v, s_gone, v_gone = (rng.normal(size=7) for _ in range(4))
    # Only a_j − b_j and the sum of b can be seen, so values are not found, but the game is, while a_j > b_j − mean b.
    model = heedful.Bag(s + 1, v, gone_scores=0.3 * s_gone, gone_values=v_gone)
    exact = heedful.explain(model, model.text, "shapley-exact")
    explanation = heedful.explain(model, model.text, "slalom", show="shapley")
    assert np.abs(explanation.scores - exact.scores).max() <= 1e-6


@pytest.mark.parametrize("absence", [REPLACE, MASK])
def test_of_several_heads_no_other_way_fits_better(absence):
    n_items = 8
    model, *_ = bag(n_items, 5, absence, n_heads=3)
    explanation = heedful.explain(model, model.text, "slalom", absence=absence, target=0)
    z = (np.arange(2**n_items)[:, None] >> np.arange(n_items)) & 1 == 1
    document = model.encode(model.text)
    keep = z if absence == REPLACE else np.hstack([z, np.ones((len(z), 1), dtype=bool)])
    f = model.masked(document, explanation.target, keep, absence)
    kept = z.sum(axis=1)
    weights = 1 / np.bincount(kept)[kept]
    part = (n_items - kept if absence == REPLACE else np.ones(len(z)))[:, None]
    there = np.hstack([z, part])

    def residuals(x):
        g = there * np.exp(x[: n_items + 1])
        return np.sqrt(weights) * (g @ x[n_items + 1 :] / g.sum(axis=1) - f)

    rng = np.random.default_rng(0)
    starts = [np.concatenate([rng.normal(size=n_items + 1), np.full(n_items + 1, f.mean())]) for _ in range(6)]
    least = min(2 * least_squares(residuals, start).cost for start in starts)
    best = 1 - least / (weights @ (f - np.average(f, weights=weights)) ** 2)
    assert explanation.facts["masks"] == 256
    # Masks held out of the fit are predicted less well than those in it.
    assert best - 0.2 <= explanation.facts["r_squared"] < best


def test_r_squared_is_computed_on_held_out_masks(paper):
    rng = np.random.default_rng(1)
    text = " ".join(rng.choice(paper.vocabulary.words[2:3000], size=30))
    explanation = heedful.explain(paper, text, "slalom", target=1, n_samples=400, show="value")
    s = heedful.explain(paper, text, "slalom", target=1, n_samples=400, show="importance")
    document = paper.encode(text)
    sizes = rng.integers(0, 31, size=4000)
    keep = np.argsort(rng.random((4000, 30)), axis=1) < sizes[:, None]
    tokens = np.hstack([np.ones((4000, 1), dtype=bool), keep])
    f = paper.masked(document, explanation.target, tokens, "replace")
    # The score of what is gone is what fits best: it alone is not among the numbers shown.
    best = -np.inf
    for s_gone in np.linspace(-5, 5, 201):
        g = np.hstack([keep, 30 - sizes[:, None]]) * np.exp(np.append(s.scores, s_gone))
        surrogate = g @ np.append(explanation.scores, explanation.facts["empty"]) / g.sum(axis=1)
        best = max(best, 1 - np.mean((surrogate - f) ** 2) / f.var())
    assert explanation.facts["r_squared"] == pytest.approx(best, abs=0.03)
    assert best > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("show", ["linearised", "value", "importance", "shapley"])
def test_intervals_hold_the_fit_to_many_more_masks(paper, show):
    rng = np.random.default_rng(2)
    text = " ".join(rng.choice(paper.vocabulary.words[2:3000], size=25))
    truth = heedful.explain(paper, text, "slalom", target=1, n_samples=20_000, show=show)
    inside = []
    for seed in range(1, 25):
        explanation = heedful.explain(paper, text, "slalom", target=1, n_samples=600, seed=seed, show=show)
        inside.append(np.abs(explanation.scores - truth.scores) <= explanation.error)
    assert np.median(truth.error) < 0.4 * np.median(explanation.error)
    assert 0.88 <= np.mean(inside) <= 0.99


def test_a_surrogate_that_does_not_fit_says_so():
    rng = np.random.default_rng(0)
    noise = {}

    def answers(texts):
        return [[noise.setdefault(text, rng.normal())] for text in texts]

    explanation = heedful.explain(heedful.wrap(answers), "a b c d e f g h i j k l", "slalom", n_samples=300)
    assert explanation.facts["r_squared"] < 0.3
    assert any(note.kind == "inexact" for note in explanation.notes)


def test_a_constant_model_has_nothing_to_share():
    model = heedful.wrap(lambda texts: [[0.25]] * len(texts))
    for show in ("linearised", "shapley", "importance"):
        explanation = heedful.explain(model, "a b c d e f g h i j k l", "slalom", n_samples=100, show=show)
        assert np.abs(explanation.scores).max() <= 1e-12
        assert explanation.facts["empty"] == pytest.approx(0.25)


def test_stopping_keeps_the_masks_evaluated_so_far():
    asked = []

    def answers(texts):
        asked.extend(texts)
        if len(asked) > limit:
            raise KeyboardInterrupt
        return [[text.count("good") ** 2 - ("b" in text) * ("h" in text)] for text in texts]

    text = "good a good b c good d e f good g h i j k good"
    limit = 900
    explanation = heedful.explain(heedful.wrap(answers, replacement="…"), text, "slalom")
    assert any("Stopped by the user after" in note and "of 2,000 masks" in note for note in explanation.notes)
    assert explanation.facts["masks"] < 900
    asked.clear()
    limit = 10**9
    whole = heedful.explain(heedful.wrap(answers, replacement="…"), text, "slalom")
    good = np.array([unit == "good" for unit in whole.units])
    assert explanation.scores[good].min() > explanation.scores[~good].max()
    assert np.median(explanation.error) > np.median(whole.error) > 0
    asked.clear()
    limit = 300
    model = heedful.wrap(answers, replacement="…")
    with pytest.raises(KeyboardInterrupt):
        heedful.explain(model, text, "slalom")


def test_too_few_units_or_samples_are_refused(tiny):
    with pytest.raises(BadInput, match="slalom needs at least 2 words; the document has 1."):
        heedful.explain(tiny, "good", "slalom")
    with pytest.raises(BadInput, match="slalom needs at least 45 samples for 9 words; n_samples is 20"):
        heedful.explain(tiny, "good film was good but the plot was dull", "slalom", n_samples=20)
    with pytest.raises(BadInput, match="slalom takes 10 to 10,000,000 samples; n_samples is 3"):
        heedful.explain(tiny, "good film", "slalom", n_samples=3)
    with pytest.raises(BadInput, match="need about 9 GB of memory"):
        heedful.explain(
            tiny, "good film was good but the plot was dull , a very very bright story", "slalom", n_samples=10_000_000
        )
    with pytest.raises(BadInput, match="There is no show 'weight'"):
        heedful.explain(tiny, "good film", "slalom", show="weight")
