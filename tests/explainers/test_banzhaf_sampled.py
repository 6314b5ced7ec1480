import numpy as np
import pytest

import heedful
from heedful.errors import BadInput

TEXT = "a truly wonderful film with a great story and a good cast but dull"
METHOD = "banzhaf-sampled"


def test_a_short_text_is_explained_without_sampling(paper):
    text = "good film but a dull plot"
    explanation = heedful.explain(paper, text, METHOD, target=1)
    exact = heedful.explain(paper, text, "banzhaf-exact", target=1)
    assert np.allclose(explanation.scores, exact.scores, atol=1e-7)
    assert (explanation.error == 0).all()
    assert explanation.facts["masks"] == 64


def test_one_word_gets_everything(paper):
    explanation = heedful.explain(paper, "good", METHOD, target=1)
    assert explanation.scores[0] == pytest.approx(explanation.output - paper(["neverseen"])[0, 1], abs=1e-9)


def test_intervals_cover_the_exact_values(paper):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(paper.vocabulary.words[2:3000], size=size)) for size in (14, 25, 40, 60)]
    exact, inside = heedful.explain(paper, texts, "banzhaf-exact", target=1), []
    for seed in range(10):
        sampled = heedful.explain(paper, texts, METHOD, target=1, n_samples=200, seed=seed)
        inside += [np.abs(a.scores - b.scores) <= a.error + b.error for a, b in zip(sampled, exact, strict=True)]
    assert 0.92 <= np.concatenate(inside).mean() <= 0.985


def test_the_least_masks_give_scores_without_intervals_and_say_so(paper):
    explanation = heedful.explain(paper, " ".join(TEXT.split()[:12]), METHOD, target=1, n_samples=24)
    assert explanation.error is None
    assert explanation.notes[-1] == "24 masks are too few for intervals; 32 are enough."
    assert explanation.notes[-1].kind == "few-samples"


def test_too_few_samples_are_refused(paper):
    with pytest.raises(BadInput, match="banzhaf-sampled needs at least 32 samples for 14 words; n_samples is 24"):
        heedful.explain(paper, TEXT, METHOD, n_samples=24)


def test_with_fewer_masks_than_units_intervals_still_cover(paper):
    text = " ".join(paper.vocabulary.words[50:110])
    exact, inside = heedful.explain(paper, text, "banzhaf-exact", target=1), []
    for seed in range(10):
        few = heedful.explain(paper, text, METHOD, target=1, n_samples=64, seed=seed)
        assert few.facts["masks"] <= 64
        inside.append(np.abs(few.scores - exact.scores) <= few.error)
    assert 0.9 <= np.mean(inside) <= 0.99


def test_auto_stops_when_every_interval_is_narrow_enough(paper):
    explanation = heedful.explain(paper, TEXT, METHOD, target=1, n_samples="auto", tolerance=0.01)
    assert explanation.error.max() <= 0.01
    assert "every 95 % interval is within" in explanation.notes[-1]


def test_signs_are_certain_from_few_masks(paper):
    explanation = heedful.explain(paper, f"{TEXT} {TEXT}", METHOD, target=1, until="signs")
    assert explanation.facts["certain_signs"] == 5
    exact = heedful.explain(paper, f"{TEXT} {TEXT}", "banzhaf-exact", target=1)
    top = np.argsort(-np.abs(explanation.scores))[:5]
    assert (np.sign(explanation.scores[top]) == np.sign(exact.scores[top])).all()
