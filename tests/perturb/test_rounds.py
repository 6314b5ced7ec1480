import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
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
            asked = {"design": design, "n_samples": "auto", "tolerance": 0.06, "seed": seed}
            found = heedful.explain(paper, text, method, target=1, **asked)
            same = {"n_samples": int(found.facts["samples"])} if method == "lime" else {}
            exact = heedful.explain(paper, text, method.removesuffix("-sampled") + "-exact", target=1, **same)
            inside.append(np.abs(found.scores - exact.scores) <= found.error + exact.error)
            assert 0 < found.error.max() <= 0.06
            assert found.facts["masks"] <= 1.1 * found.facts["samples"] + 10
    assert 0.9 <= np.mean(np.concatenate(inside)) <= 0.99


@pytest.mark.parametrize("method", ["lime", "shapley-sampled"])
def test_auto_stops_when_every_interval_is_narrow_enough_and_says_so(paper, method):
    found = heedful.explain(paper, TEXT, method, n_samples="auto", tolerance=0.05)
    assert found.error.max() <= 0.05
    assert "every 95 % interval is within" in found.notes[-1]
    tighter = heedful.explain(paper, TEXT, method, n_samples="auto", tolerance=0.01)
    assert tighter.error.max() <= 0.01
    assert tighter.facts["samples"] > found.facts["samples"]


@pytest.mark.parametrize("method", ["lime", "shapley-sampled"])
def test_auto_gives_up_at_its_budget_and_says_so(paper, method):
    found = heedful.explain(paper, TEXT, method, n_samples="auto", tolerance=1e-6, budget=700)
    assert found.facts["samples"] <= 700
    assert found.error.max() > 1e-6
    assert "The budget of 700 samples is spent" in found.notes[-1]


def test_a_mask_is_asked_once_however_often_it_is_drawn(tiny, monkeypatch):
    asked = []
    masked = type(tiny).masked

    def counting(self, document, target, keep, absence, memory):
        asked.append(keep)
        return masked(self, document, target, keep, absence)

    monkeypatch.setattr(type(tiny), "masked", counting)
    found = heedful.explain(tiny, "good film was very bad", "lime", n_samples=400, design="independent")
    masks = np.concatenate(asked)
    assert len(np.unique(masks, axis=0)) == len(masks) == found.facts["masks"] <= 32


def test_distinct_masks_come_in_order_of_first_appearance():
    keep = np.array([[1, 0, 1], [1, 1, 1], [1, 0, 1], [0, 0, 0]], dtype=bool)
    masks, place = distinct(keep)
    assert masks.tolist() == keep[[0, 1, 3]].tolist()
    assert place.tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_samples": 9}, "Lime takes 10 to 10,000,000 samples; n_samples is 9."),
        ({"n_samples": "auto", "tolerance": 0.0}, "Lime needs a tolerance above 0; 0 was given."),
        ({"n_samples": "many"}, "n_samples must be a whole number or auto; 'many' was given."),
        ({"n_samples": 9_000_000}, "9,000,000 samples of 23 words would need about 10 GB of memory; take fewer."),
        ({"n_samples": "auto", "budget": 20}, "Lime needs at least 58 samples for 23 words; budget is 20."),
    ],
)
def test_bad_plans_are_refused(paper, settings, sentence):
    with pytest.raises(BadInput, match=sentence):
        heedful.explain(paper, TEXT, "lime", **settings)
