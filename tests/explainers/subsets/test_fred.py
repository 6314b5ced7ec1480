from itertools import combinations

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from tests.metrics.linear import linear, texts

TEXT = "good film was not bad but very dull"


def test_scores_are_half_of_exact_banzhaf_values(tiny):
    exact = heedful.explain(tiny, TEXT, "banzhaf-exact", target=1)
    e = heedful.explain(tiny, TEXT, "fred", target=1)
    assert e.scores == pytest.approx(exact.scores / 2, abs=1e-9)
    assert (e.error == 0).all()


def test_the_set_is_the_smallest_that_lowers_the_mean_over_all_masks_enough(tiny):
    e = heedful.explain(tiny, TEXT, "fred", target=1, epsilon=0.3, beam_width=100)
    rows = []
    for kept in [set(S) for n in range(9) for S in combinations(range(8), n)]:
        masked = " ".join(word if i in kept else "[unk]" for i, word in enumerate(TEXT.split()))
        rows.append((kept, float(tiny([masked])[0, 1])))
    mean, whole = np.mean([f for _, f in rows]), float(tiny([TEXT])[0, 1])
    drops = {}
    for size in range(1, 9):
        for c in combinations(range(8), size):
            drops[c] = mean - np.mean([f for kept, f in rows if not kept & set(c)])
    reach = [c for c, drop in drops.items() if drop >= 0.3 * abs(whole)]
    smallest = min(len(c) for c in reach)
    assert e.facts["set_size"] == smallest
    assert e.facts["set_drop"] == pytest.approx(max(drops[c] for c in reach if len(c) == smallest), abs=1e-6)
    best = max((c for c in reach if len(c) == smallest), key=lambda c: drops[c])
    sentence = next(str(note) for note in e.notes if note.kind == "result")
    assert ", ".join(f'"{TEXT.split()[i]}"' for i in best) in sentence


def test_intervals_of_scores_and_of_the_drop_hold_the_values_of_a_linear_model():
    model, inside, sets = linear(), [], []
    for text in texts()[:12]:
        weights = heedful.explain(model, text, "leave-one-out", target=1).scores
        e = heedful.explain(model, text, "fred", target=1, n_samples=400)
        inside += list(np.abs(e.scores - weights / 2) <= e.error + 1e-12)
        named = next(str(note) for note in e.notes if note.kind == "result").split(" the output")[0]
        chosen = [unit for unit, word in enumerate(e.units) if f'"{word}"' in named]
        assert len(chosen) == e.facts["set_size"]
        sets.append(abs(e.facts["set_drop"] - weights[chosen].sum() / 2) <= e.facts["set_drop_error"] + 1e-9)
    assert np.mean(inside) >= 0.9
    assert np.mean(sets) >= 10 / 12


def test_a_certain_set_is_said_to_be_certain_and_another_is_not(tiny):
    sentences = [
        next(
            str(n)
            for n in heedful.explain(tiny, TEXT, "fred", target=1, epsilon=e, max_size=1).notes
            if n.kind == "result"
        )
        for e in (0.01, 1.0)
    ]
    assert ", at least 1 % of f(x)" in sentences[0]
    # All masks were evaluated, so it is certain to be less.
    assert ", less than 100 % of f(x)" in sentences[1]


def test_few_masks_leave_it_uncertain(tiny):
    e = heedful.explain(tiny, TEXT, "fred", target=1, epsilon=0.3, max_size=2, n_samples=16)
    drop, width, goal = e.facts["set_drop"], e.facts["set_drop_error"], 0.3 * abs(float(tiny([TEXT])[0, 1]))
    sentence = next(str(note) for note in e.notes if note.kind == "result")
    assert ("not certain" in sentence) == (drop >= 0 and drop - width < goal <= drop + width)


def test_a_rise_is_called_higher():
    model = heedful.wrap(lambda texts: [[text.count("UNK") / 10 + 0.1, 0.9 - text.count("UNK") / 10] for text in texts])
    e = heedful.explain(model, "one two three", "fred", target=0, scale="probability", epsilon=0.15)
    sentence = next(str(note) for note in e.notes if note.kind == "result")
    assert e.facts["set_drop"] == pytest.approx(-0.05)
    assert "the output is higher by 0.05, on average over masked texts, and no set that was tried lowers" in sentence


@pytest.mark.parametrize("settings", [{"epsilon": 0}, {"max_size": 0}, {"beam_width": 0}, {"n_samples": 3}])
def test_wrong_settings_are_refused(tiny, settings):
    with pytest.raises(BadInput, match="^fred takes"):
        heedful.explain(tiny, TEXT, "fred", **settings)
