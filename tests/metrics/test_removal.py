from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil

import numpy as np
import pytest

from heedful.errors import BadInput, UnknownName, Unsupported
from heedful.family import build
from heedful.metrics import measure
from heedful.metrics.removal import (
    Comprehensiveness,
    Deletion,
    EvidenceAgainst,
    EvidenceFor,
    Insertion,
    Sufficiency,
    ranked,
)
from tests.families import build as build_family
from tests.metrics.linear import linear
from tests.metrics.masked_text import evaluation_of, masked_text, value

TEXT = "good film was not bad but very dull"
SCORES = [0.3, -1.2, 0.05, 2.0, -0.4, 0.9, -0.7, -0.01]
SHARES = [Fraction(1, 100), Fraction(5, 100), Fraction(10, 100), Fraction(20, 100), Fraction(50, 100)]
HOLES = {"replace": "neverseen", "delete": None}
EVERY = list(product(("any", "for", "against"), ("target", "probability"), HOLES))


def order_of(evidence):
    key = {"any": lambda place: -abs(SCORES[place]), "for": lambda place: -SCORES[place]}
    return sorted(range(8), key=key.get(evidence, lambda place: SCORES[place]))


def area(heights, counts):
    """The mean of straight lines between the heights, each as long as the words it spans."""
    pairs = zip(zip(counts, heights, strict=True), zip(counts[1:], heights[1:], strict=True), strict=False)
    return sum((end - start) * (a + b) / 2 for (start, a), (end, b) in pairs) / counts[-1]


def moved(f, named, evidence, of, taken):
    """The change of f when the named words go, or when they alone are there."""
    everything = set(range(8))
    rest = f(everything, of) if taken else f(set(), of)

    def change(some):
        return rest - f(everything - some, of) if taken else f(some, of) - rest

    if evidence == "for":
        return change(named)
    if evidence == "against":
        return -change(named)
    helping = {place for place in named if f(everything, "target") > f(everything - {place}, "target")}
    return abs(change(helping)) + abs(change(named - helping))


def asker(model, text, hole):
    return lambda keep, of: value(model, masked_text(text, keep, hole), of)


@pytest.mark.parametrize(("evidence", "of", "absence"), EVERY)
@pytest.mark.parametrize(("n_steps", "counts"), [(3, [0, 3, 5, 8]), (4, [0, 2, 4, 6, 8]), (10, list(range(9)))])
def test_curves_are_the_mean_height_over_masked_texts(tiny, evidence, of, absence, n_steps, counts):
    f = asker(tiny, TEXT, HOLES[absence])
    order, evaluation = order_of(evidence), evaluation_of(tiny, TEXT, SCORES)
    for metric, taken in ((Deletion, True), (Insertion, False)):
        heights = [moved(f, set(order[:count]), evidence, of, taken) for count in counts]
        expected = area(heights, counts)
        value = measure(metric(absence=absence, n_steps=n_steps, evidence=evidence, measure_of=of), evaluation)
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("evidence", "of", "absence"), EVERY)
def test_comprehensiveness_and_sufficiency_are_means_over_eraser_s_shares(tiny, evidence, of, absence):
    f = asker(tiny, TEXT, HOLES[absence])
    order, everything = order_of(evidence), set(range(8))
    named = [set(order[: max(1, ceil(share * 8))]) for share in SHARES]
    assert [len(some) for some in named] == [1, 1, 1, 2, 4]
    evaluation = evaluation_of(tiny, TEXT, SCORES)
    settings = {"absence": absence, "evidence": evidence, "measure_of": of}
    needed = [moved(f, some, evidence, of, True) for some in named]
    assert measure(Comprehensiveness(**settings), evaluation) == pytest.approx(sum(needed) / 5, abs=1e-12)
    short = [f(everything, of) - f(some, of) for some in named]
    sign = {"any": abs, "for": float, "against": lambda difference: -difference}[evidence]
    assert measure(Sufficiency(**settings), evaluation) == pytest.approx(sum(map(sign, short)) / 5, abs=1e-12)


def test_words_of_several_tokens_go_whole_from_a_bert():
    model, text = build_family("bert"), "a bad unbelievable story"
    scores = [0.1, -0.2, 3.0, 1.0]
    f = asker(model, text, None)
    expected = [f({0, 1, 2, 3}, "probability") - f(keep, "probability") for keep in ({0, 1, 3},) * 4 + ({0, 1},)]
    metric = Comprehensiveness(absence="delete", evidence="for", measure_of="probability")
    assert measure(metric, evaluation_of(model, text, scores)) == pytest.approx(sum(expected) / 5, abs=1e-9)


@pytest.mark.parametrize("absence", HOLES)
def test_evidence_of_one_side_is_deletion_from_its_end_of_the_order(tiny, absence):
    evaluation = evaluation_of(tiny, TEXT, SCORES)
    f = asker(tiny, TEXT, HOLES[absence])
    for metric, evidence in ((EvidenceFor, "for"), (EvidenceAgainst, "against")):
        order = order_of(evidence)
        heights = [moved(f, set(order[:count]), evidence, "target", True) for count in range(9)]
        expected = area(heights, range(9))
        assert measure(metric(absence=absence), evaluation) == pytest.approx(expected, abs=1e-12)


def test_on_a_sum_of_words_the_values_are_those_by_hand():
    # The weights: w9 −3, w20 none, w1 −7/9, w0 1/2, and f is their sum.
    evaluation = evaluation_of(linear(), "w9 w20 w1 w0", [-3.0, 0.0, -7 / 9, 0.5])
    both = [0, 3, 3 + 7 / 9, 3 + 7 / 9 + 1 / 2, 3 + 7 / 9 + 1 / 2]
    for metric in (Deletion, Insertion):
        assert measure(metric(), evaluation) == pytest.approx((sum(both) - both[-1] / 2) / 4)
    # 1, 5, 10 and 20 % of four words are one, half are two.
    assert measure(Comprehensiveness(), evaluation) == pytest.approx((4 * 3 + 3 + 7 / 9) / 5)
    f = -3 - 7 / 9 + 1 / 2
    assert measure(Sufficiency(), evaluation) == pytest.approx((4 * abs(f + 3) + abs(f + 3 + 7 / 9)) / 5)
    fallen = [0, 1 / 2, 1 / 2, 1 / 2 - 7 / 9, f]
    assert measure(EvidenceFor(), evaluation) == pytest.approx((sum(fallen) - f / 2) / 4)
    risen = [0, 3, 3 + 7 / 9, 3 + 7 / 9, -f]
    assert measure(EvidenceAgainst(), evaluation) == pytest.approx((sum(risen) + f / 2) / 4)


@pytest.mark.parametrize("metric", [Deletion, Insertion, Comprehensiveness, Sufficiency])
def test_unsigned_methods_are_measured_by_their_strongest_units(tiny, metric):
    signed, unsigned = evaluation_of(tiny, TEXT, SCORES), evaluation_of(tiny, TEXT, np.abs(SCORES), signed=False)
    assert measure(metric(), unsigned) == measure(metric(), signed)
    for evidence in ("for", "against"):
        with pytest.raises(Unsupported, match=f"^given has unsigned scores; evidence {evidence} the target needs"):
            measure(metric(evidence=evidence), unsigned)


@pytest.mark.parametrize("metric", [EvidenceFor, EvidenceAgainst])
def test_evidence_of_one_side_wants_a_sign(tiny, metric):
    with pytest.raises(Unsupported, match=f"^{metric.name}: this metric needs signed scores"):
        measure(metric(), evaluation_of(tiny, TEXT, np.abs(SCORES), signed=False))


def test_equal_scores_are_in_no_reading_order_and_the_same_for_every_method():
    model, rng = linear(), np.random.default_rng(0)
    places = {evidence: np.zeros(5, dtype=int) for evidence in ("any", "for", "against")}
    for _ in range(100):
        text = " ".join(f"w{number}" for number in rng.choice(60, size=5, replace=False))
        ones = evaluation_of(model, text, np.ones(5))
        for evidence, counts in places.items():
            order = ranked(ones, evidence)
            assert sorted(order.tolist()) == [0, 1, 2, 3, 4]
            assert np.array_equal(order, ranked(evaluation_of(model, text, np.full(5, 7.0)), evidence))
            counts[order[0]] += 1
    for counts in places.values():
        assert counts.min() >= 8
        assert counts.max() <= 35


def test_lots_decide_between_equals_only():
    scores = [0.0, 5.0, 0.0, -7.0, 0.0]
    evaluation = evaluation_of(linear(), "w1 w2 w3 w4 w5", scores)
    assert ranked(evaluation, "any")[:2].tolist() == [3, 1]
    assert ranked(evaluation, "for")[[0, -1]].tolist() == [1, 3]
    assert ranked(evaluation, "against")[[0, -1]].tolist() == [3, 1]
    middle = ranked(evaluation, "any")[2:].tolist()
    assert ranked(evaluation, "for")[1:-1].tolist() == ranked(evaluation, "against")[1:-1].tolist() == middle


@pytest.mark.parametrize(("absence", "empty"), [("replace", "neverseen"), ("delete", "")])
def test_of_one_word_the_whole_text_goes_or_stays(tiny, absence, empty):
    evaluation = evaluation_of(tiny, "dull", [1.0])
    change = value(tiny, "dull") - value(tiny, empty)
    settings = {"absence": absence, "evidence": "for"}
    assert measure(Comprehensiveness(**settings), evaluation) == pytest.approx(change, abs=1e-12)
    assert measure(Sufficiency(**settings), evaluation) == pytest.approx(0, abs=1e-12)
    assert measure(Deletion(**settings), evaluation) == pytest.approx(change / 2, abs=1e-12)
    assert measure(Insertion(**settings), evaluation) == pytest.approx(change / 2, abs=1e-12)
    assert measure(Deletion(absence=absence), evaluation) == pytest.approx(abs(change) / 2, abs=1e-12)


@pytest.mark.parametrize("metric", [Deletion, Insertion, Comprehensiveness, Sufficiency, EvidenceFor, EvidenceAgainst])
def test_where_the_text_moves_nothing_nothing_is_moved(metric):
    assert measure(metric(), evaluation_of(linear(), "w30 w31 w32", [1.0, -2.0, 3.0])) == 0


@pytest.mark.parametrize("metric", [Deletion, Insertion, Comprehensiveness, Sufficiency])
def test_a_contrast_has_no_probability(tiny, metric):
    evaluation = evaluation_of(tiny, TEXT, SCORES, against=0)
    assert np.isfinite(measure(metric(), evaluation))
    with pytest.raises(Unsupported, match="has no probability"):
        measure(metric(measure_of="probability"), evaluation)


def test_a_log_probability_that_was_explained_has_the_same_probability(tiny):
    plain, on_log = evaluation_of(tiny, TEXT, SCORES), evaluation_of(tiny, TEXT, SCORES, scale="log-probability")
    metric = Comprehensiveness(evidence="for", measure_of="probability")
    assert measure(metric, plain) == pytest.approx(measure(metric, on_log), abs=1e-14)
    assert measure(replace(metric, measure_of="target"), plain) != measure(replace(metric, measure_of="target"), on_log)


def test_settings_that_cannot_be_are_refused_in_a_sentence(tiny):
    for metric in (Deletion, Insertion, Comprehensiveness, Sufficiency, EvidenceFor, EvidenceAgainst):
        with pytest.raises(UnknownName, match="^There is no absence 'vanish'"):
            metric(absence="vanish")
    for metric in (Deletion, Insertion):
        with pytest.raises(UnknownName, match="^There is no evidence 'sideways'"):
            build(metric, metric.name, {"evidence": "sideways"})
        with pytest.raises(UnknownName, match="^There is no measure_of 'odds'"):
            build(metric, metric.name, {"measure_of": "odds"})
    for metric in (Deletion, Insertion, EvidenceFor, EvidenceAgainst):
        with pytest.raises(BadInput, match=r"^A curve needs n_steps ≥ 1; 0 was given\.$"):
            measure(metric(n_steps=0), evaluation_of(tiny, TEXT, SCORES))
