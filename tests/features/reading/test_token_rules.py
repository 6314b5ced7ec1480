from itertools import product

import numpy as np
import pytest

from heedful.features.reading import token_rules
from heedful.features.reading.token_rules import MEASURE, aspects_of, auroc_of_counts, rules_of, split_texts
from heedful.statistics.intervals import jackknife_interval
from tests.features.reading.planted import pairs_where, random_texts, read_words


@pytest.fixture(scope="module")
def read():
    return read_words(random_texts())


def rules_where(read, activation, seed=0):
    part = split_texts([document.text for document in read.documents], seed)
    return rules_of(pairs_where(read, activation), aspects_of(read, part), read, part)


def auroc_by_pairs(scores, active):
    """Every pair of an active and an inactive token, one by one."""
    pairs = [*product(np.array(scores)[np.array(active)], np.array(scores)[~np.array(active)])]
    return sum(1.0 if one > other else 0.5 if one == other else 0.0 for one, other in pairs) / len(pairs)


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores, active = rng.integers(0, 5, 40), rng.random(40) < 0.3
        active[:2] = True, False
        counts = [np.bincount(scores[side], minlength=5) for side in (active, ~active)]
        assert auroc_of_counts(*counts) == pytest.approx(auroc_by_pairs(scores, active), abs=1e-12)
    assert np.isnan(auroc_of_counts(np.zeros(3, dtype=int), np.ones(3, dtype=int)))


def test_a_feature_of_one_token_has_that_token_as_its_rule(read):
    (rule,) = rules_where(read, lambda words, place: float(words[place] == "good"))[:1]
    assert (rule.aspect, rule.values, rule.scores) == ("token", ("good",), (1.0,))
    assert rule.label == "token: good"
    assert (rule.auroc.value, rule.precision.value, rule.recall.value) == (1.0, 1.0, 1.0)


def test_scores_are_mean_activations_in_the_texts_the_rule_is_made_from(read):
    strengths = {"good": 3.0, "bad": 2.0}

    def activation(words, place):
        return strengths.get(words[place], 0.0) if place % 2 else 0.0

    (rule,) = rules_where(read, activation)[:1]
    part = split_texts([document.text for document in read.documents], 0)
    made = [words for words, own in zip(read.pieces, part, strict=True) if own != MEASURE]
    for value, score in zip(rule.values, rule.scores, strict=True):
        own = [activation(words, place) for words in made for place in range(len(words)) if words[place] == value]
        assert score == pytest.approx(np.mean(own))
    assert set(rule.values) == {"good", "bad"}


@pytest.mark.parametrize(
    ("aspect", "values", "activation"),
    [
        ("previous token", {"not"}, lambda words, place: float(place > 0 and words[place - 1] == "not")),
        ("token before the previous", {"very"}, lambda words, place: float(place > 1 and words[place - 2] == "very")),
        ("place in the text", {"1", "2"}, lambda words, place: float(place < 2)),
        ("next token", {"not"}, lambda words, place: float(words[place + 1 : place + 2] == ("not",))),
        ("next token", {"(end of the text)"}, lambda words, place: float(place == len(words) - 1)),
        ("first letters", {"sun"}, lambda words, place: float(words[place].startswith("sun"))),
        ("last letters", {"ing"}, lambda words, place: float(words[place].endswith("ing"))),
        ("kind", {"number"}, lambda words, place: float(words[place].isdecimal())),
        ("two tokens", {"good film"}, lambda words, place: float(words[max(0, place - 1) : place + 1] == GOOD_FILM)),
    ],
)
def test_each_aspect_is_recognised(aspect, values, activation):
    # Each of many words with the same beginning, ending or kind is rare.
    texts = [f"{text} sun{n} {n}ing {n} {' '.join(GOOD_FILM)} {n % 7}x{n}" for n, text in enumerate(random_texts(120))]
    rule = rules_where(read_words(texts), activation)[0]
    assert (rule.aspect, set(rule.values)) == (aspect, values)
    assert rule.auroc.value == pytest.approx(1, abs=0.02)


GOOD_FILM = ("good", "film")


def noisy(words, place):
    rng = np.random.default_rng([len(words), place, sum(map(ord, words[place]))])
    return float(rng.random()) * (3 if words[place] in ("good", "bright") else rng.random() < 0.05)


def by_hand(read, rule, activation, left_out=None):
    """The rule's score and whether the feature is active, for every held-out token."""
    part = split_texts([document.text for document in read.documents], 0)
    table = dict(zip(rule.values, rule.scores, strict=True))
    numbers = [n for n in np.flatnonzero(part == MEASURE).tolist() if n != left_out]
    tokens = [(read.pieces[n], place) for n in numbers for place in range(len(read.pieces[n]))]
    scores = [table.get(words[place], 0.0) for words, place in tokens]
    return scores, [activation(words, place) > rule.threshold for words, place in tokens], numbers


def test_auroc_precision_and_recall_are_those_of_every_held_out_token(read):
    for rule in rules_where(read, noisy):
        assert rule.aspect == "token"
        scores, active, _ = by_hand(read, rule, noisy)
        assert rule.auroc.value == pytest.approx(auroc_by_pairs(scores, active), abs=1e-12)
        holds, active = np.array(scores) > 0, np.array(active)
        assert rule.precision.value == pytest.approx((holds & active).sum() / holds.sum())
        assert rule.recall.value == pytest.approx((holds & active).sum() / active.sum())
        assert rule.density == pytest.approx(active.mean())


def test_the_interval_is_the_jackknife_over_texts(read):
    rule = rules_where(read, noisy)[0]
    *_, numbers = by_hand(read, rule, noisy)
    without = [auroc_by_pairs(*by_hand(read, rule, noisy, number)[:2]) for number in numbers]
    expected = jackknife_interval(rule.auroc.value, np.array(without), (0.0, 1.0))
    assert tuple(rule.auroc[1:]) == pytest.approx(expected, abs=1e-9)
    assert rule.auroc.low < rule.auroc.value < rule.auroc.high


def test_strong_activity_has_a_rule_of_its_own(read):
    def activation(words, place):
        weak = np.random.default_rng([place, len(words), ord(words[place][-1])]).random() < 0.4
        return 2.0 if words[place] == "dull" else 0.1 * weak

    rules = rules_where(read, activation)
    assert rules[0].label == "token: dull (strong)"
    assert rules[0].threshold == 1.0
    assert rules[0].precision.value == 1


def test_a_feature_without_a_pattern_has_no_rule(read):
    rng = np.random.default_rng(3)
    assert rules_where(read, lambda words, place: float(rng.random() < 0.2)) == ()


def test_a_feature_that_is_always_active_or_too_rare_has_no_rule(read):
    assert rules_where(read, lambda words, place: 1.0) == ()
    words = read.pieces[0]
    assert rules_where(read, lambda own, place: float(own is words)) == ()


def test_few_held_out_texts_give_no_rule():
    read = read_words(random_texts(6))
    assert rules_where(read, lambda words, place: float(words[place] == "good")) == ()


def test_of_equal_rules_the_shorter_one_of_the_token_is_kept(read):
    # The last three letters and the first three are as good as the token.
    rule = rules_where(read, lambda words, place: float(words[place] == "bright"))[0]
    assert (rule.aspect, rule.values) == ("token", ("bright",))


def test_no_text_is_on_both_sides_and_the_order_does_not_matter():
    texts = random_texts(100)
    part = split_texts([*texts, *texts[::-1]], 4)
    assert part[:100].tolist() == part[100:][::-1].tolist()
    n_different = len({*texts})
    of = dict(zip(texts, part, strict=False))
    counts = np.bincount([*of.values()], minlength=3)
    assert np.abs(counts - np.array([0.3, 0.2, 0.5]) * n_different).max() <= 1
    assert split_texts(texts, 4).tolist() != split_texts(texts, 5).tolist()


def test_what_is_not_good_enough_is_not_shown(read, monkeypatch):
    assert rules_where(read, noisy)
    monkeypatch.setattr(token_rules, "LEAST_AUROC", 1.1)
    assert rules_where(read, noisy) == ()
