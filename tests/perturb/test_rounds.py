import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.models.question import Question
from heedful.perturb.sweep import distinct

TEXT = "the plot was thin and the actors were bad but i liked the music and the bright ending of this story very much"


@pytest.mark.parametrize(
    ("method", "design"),
    [
        *(("lime", design) for design in ("independent", "paired", "stratified")),
        *(("shapley-sampled", design) for design in ("walks", "independent", "paired", "stratified")),
    ],
)
def test_rounds_cover_what_they_say_and_cost_what_they_say(paper, method, design):
    """Tolerances that take several rounds; against exact values, over several texts and seeds."""
    texts = [TEXT, TEXT + " " + TEXT, " ".join(TEXT.split()[:16])]
    inside = []
    for text in texts:
        for seed in range(6):
            settings = {"design": design, "n_samples": "auto", "tolerance": 0.06, "seed": seed}
            explanation = heedful.explain(paper, text, method, target=1, **settings)
            same_samples = {"n_samples": int(explanation.facts["samples"])} if method == "lime" else {}
            exact = heedful.explain(paper, text, method.removesuffix("-sampled") + "-exact", target=1, **same_samples)
            inside.append(np.abs(explanation.scores - exact.scores) <= explanation.error + exact.error)
            assert 0 < explanation.error.max() <= 0.06
            assert explanation.facts["masks"] <= 1.1 * explanation.facts["samples"] + 10
    assert 0.9 <= np.mean(np.concatenate(inside)) <= 0.99


@pytest.mark.parametrize("method", ["lime", "shapley-sampled"])
def test_auto_stops_when_every_interval_is_narrow_enough_and_says_so(paper, method):
    explanation = heedful.explain(paper, TEXT, method, n_samples="auto", tolerance=0.05)
    assert explanation.error.max() <= 0.05
    assert "every 95 % interval is within" in explanation.notes[-1]
    tighter = heedful.explain(paper, TEXT, method, n_samples="auto", tolerance=0.01)
    assert tighter.error.max() <= 0.01
    assert tighter.facts["samples"] > explanation.facts["samples"]


@pytest.mark.parametrize("method", ["lime", "shapley-sampled"])
def test_auto_gives_up_at_its_budget_and_says_so(paper, method):
    explanation = heedful.explain(paper, TEXT, method, n_samples="auto", tolerance=1e-6, budget=700)
    assert explanation.facts["samples"] <= 700
    assert explanation.error.max() > 1e-6
    assert "Stopped at the budget of 700 samples" in explanation.notes[-1]


def test_a_mask_is_evaluated_once_however_often_it_is_drawn(tiny, monkeypatch):
    evaluated = []
    masked = Question.masked

    def counting(question, index, keep, absence, at_once=None):
        evaluated.append(keep)
        return masked(question, index, keep, absence, at_once)

    monkeypatch.setattr(Question, "masked", counting)
    explanation = heedful.explain(tiny, "good film was very bad", "lime", n_samples=400, design="independent")
    masks = np.concatenate(evaluated)
    assert len(np.unique(masks, axis=0)) == len(masks) == explanation.facts["masks"] <= 32


def test_distinct_masks_come_in_order_of_first_appearance():
    keep = np.array([[1, 0, 1], [1, 1, 1], [1, 0, 1], [0, 0, 0]], dtype=bool)
    masks, place = distinct(keep)
    assert masks.tolist() == keep[[0, 1, 3]].tolist()
    assert place.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_samples": 9}, "lime takes 10 to 10,000,000 samples; n_samples is 9."),
        ({"n_samples": "auto", "tolerance": 0.0}, "lime needs a tolerance above 0; 0 was given."),
        ({"n_samples": "many"}, "n_samples must be a whole number or auto; 'many' was given."),
        ({"n_samples": 9_000_000}, "9,000,000 samples of 23 words would need about 10 GB of memory; lower n_samples."),
        ({"n_samples": "auto", "budget": 20}, "lime needs at least 58 samples for 23 words; budget is 20."),
    ],
)
def test_bad_plans_are_refused(paper, settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        heedful.explain(paper, TEXT, "lime", **settings)
