from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import heedful
from heedful.document import SPECIAL
from heedful.errors import BadInput
from heedful.explainers import configure
from heedful.explainers.anchors import together
from heedful.explainers.run import run_explainer
from heedful.models.budget import Budget
from heedful.models.question import ask
from tests.conftest import WORDS, tiny_model
from tests.families import build, loud, network_of


def all_masks(n_units):
    return (np.arange(2**n_units)[:, None] >> np.arange(n_units)) & 1 == 1


def thinned(words, keep, absence):
    if absence == "delete":
        return " ".join(word for word, kept in zip(words, keep, strict=True) if kept)
    return " ".join(word if kept else "neverseen" for word, kept in zip(words, keep, strict=True))


def precisions(stays, n_units, sizes, presence=0.5):
    """Of every set of these sizes, from the definition: the weighted share of the masks that keep it."""
    masks = all_masks(n_units)
    weights = np.where(masks, presence, 1 - presence).prod(axis=1)
    result = {}
    for size in sizes:
        for held in combinations(range(n_units), size):
            kept = masks[:, list(held)].all(axis=1)
            result[held] = weights[kept & stays].sum() / weights[kept].sum()
    return result


def some_words(seed, n):
    return np.random.default_rng(seed).choice(WORDS, n, replace=False).tolist()


@pytest.mark.parametrize("absence", ["replace", "delete"])
def test_a_short_text_has_the_smallest_anchor_that_all_sets_show(tiny, absence):
    sizes = set()
    for seed in range(8):
        words = some_words(seed, 7)
        logits = tiny([thinned(words, keep, absence) for keep in all_masks(7)])
        stays = logits.argmax(axis=1) == logits[-1].argmax()
        for presence in (0.5, 0.3):
            precision_of = precisions(stays, 7, range(8), presence)
            e = heedful.explain(tiny, " ".join(words), "anchors", absence=absence, presence=presence)
            held = tuple(np.flatnonzero(e.scores).tolist())
            least = min(len(other) for other, p in precision_of.items() if p >= 0.95)
            assert len(held) == least == e.facts["anchor_size"]
            assert precision_of[held] == pytest.approx(
                max(p for other, p in precision_of.items() if len(other) == least)
            )
            assert e.facts["precision"] == e.facts["precision_lower"] == pytest.approx(precision_of[held])
            assert e.facts["coverage"] == presence**least
            assert e.scores.sum() == pytest.approx(precision_of[held] - precision_of[()])
            assert e.facts["masks"] >= 2**7
            assert e.error is not None
            assert not e.error.any()
            sizes.add(least)
    assert len(sizes) >= 3


@pytest.mark.slow
@pytest.mark.parametrize(("number", "n_classes"), [(4, 2), (2, 3), (7, 3)])
def test_a_longer_text_has_an_anchor_as_precise_as_promised_and_hardly_a_smaller_one(number, n_classes):
    model, sizes, missed = tiny_model(number, n_classes=n_classes), [], 0
    for seed in range(12):
        words = some_words(seed, 11)
        logits = model([thinned(words, keep, "replace") for keep in all_masks(11)])
        stays = logits.argmax(axis=1) == logits[-1].argmax()
        e = heedful.explain(model, " ".join(words), "anchors")
        held = tuple(np.flatnonzero(e.scores).tolist())
        precision_of = precisions(stays, 11, range(len(held) + 1))
        assert precision_of[held] >= e.facts["precision_lower"] >= 0.95
        missed += any(p >= 0.98 for other, p in precision_of.items() if len(other) < len(held))
        assert e.scores.sum() == pytest.approx(e.facts["precision"] - e.facts["base_precision"])
        assert e.facts["base_precision"] == pytest.approx(precision_of[()], abs=0.12)
        assert n_classes > 2 or e.facts["masks"] <= 5000
        assert e.error is not None
        assert (e.error[list(held)] > 0).all()
        sizes.append(len(held))
    # A test may fail by bad luck; in 480 searches it did so once.
    assert missed <= 1
    assert len(set(sizes)) >= 3


def scores_of(texts, n_classes):
    """Small whole numbers, so that classes are often level."""
    return [
        [sum(ord(c) * (k + 2) for c in t.replace("neverseen", "")) // 7 % 4 for k in range(n_classes)] for t in texts
    ]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_predicted_class_is_that_of_argmax_also_where_classes_are_level(n_classes):
    model = heedful.wrap(lambda texts: scores_of(texts, n_classes), replacement="neverseen")
    for seed in range(4):
        words = some_words(seed, 6)
        logits = model([thinned(words, keep, "replace") for keep in all_masks(6)])
        for target in range(n_classes):
            predicted = logits.argmax(axis=1) == target
            precision_of = precisions(predicted == predicted[-1], 6, range(7))
            e = heedful.explain(model, " ".join(words), "anchors", target=target, threshold=0.9)
            held = tuple(np.flatnonzero(e.scores).tolist())
            if e.facts["anchor_size"] == len(held):
                assert e.facts["precision"] == pytest.approx(precision_of[held])
            assert e.facts["base_precision"] == pytest.approx(precision_of[()])
            assert ("stays other than" in e.notes[-1]) == (not predicted[-1])


def test_a_contrast_is_about_which_of_two_classes_is_ahead(tiny):
    words = some_words(1, 7)
    logits = tiny([thinned(words, keep, "replace") for keep in all_masks(7)])
    for target, against in ((0, 1), (1, 0), (2, 0)):
        ahead = logits[:, target] > logits[:, against]
        e = heedful.explain(tiny, " ".join(words), "anchors", target=target, against=against)
        assert e.facts["base_precision"] == pytest.approx((ahead == ahead[-1]).mean())
        assert ("stays ahead of" if ahead[-1] else "does not get ahead of") in e.notes[-1]


def test_a_single_score_keeps_its_sign():
    model = build("single-logit")
    words = ["the", "film", "was", "good"]
    scores = model([" ".join(w if k else "[MASK]" for w, k in zip(words, keep, strict=True)) for keep in all_masks(4)])
    same = (scores[:, 0] > 0) == (scores[-1, 0] > 0)
    e = heedful.explain(model, " ".join(words), "anchors", absence="replace:[MASK]")
    assert e.facts["base_precision"] == pytest.approx(same.mean())
    assert "above 0" in e.notes[-1] or "below 0" in e.notes[-1]


def test_of_many_classes_the_target_keeps_half_of_its_probability():
    model = build("gpt2")
    words = ["the", "film", "was", "good"]
    e = heedful.explain(model, " ".join(words), "anchors", absence="replace:.", scale="log-probability")
    holes = [" ".join(words)]
    for keep in all_masks(4)[:-1]:
        tokens = [word if kept else "." for word, kept in zip(words, keep, strict=True)]
        holes.append(" ".join(tokens).replace(" .", "."))
    logits = model(holes)
    share = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))[:, e.target.index]
    assert np.exp(e.output) == pytest.approx(share[0])
    assert e.facts["base_precision"] == pytest.approx((share >= share[0] / 2).mean())
    assert "half of its probability" in e.notes[-1]


def test_units_and_pictures_are_named_in_the_note(tiny, paper):
    text = (
        "bad bad film bad film good story , truly awful and wonderful at once . good good good good good good good good"
    )
    note = heedful.explain(paper, text, "anchors").notes[-1]
    assert note.startswith('If "bad" (word ')
    assert note.endswith("of them keep these.")
    assert 'the prediction stays "negative" in ' in note
    sentences = heedful.explain(paper, text, "anchors", unit="sentence")
    assert sentences.facts["masks"] == 4
    assert "…" in sentences.notes[-1]
    assert heedful.explain(paper, "a truly wonderful film", "anchors").notes[-1].startswith("No anchor is needed: ")
    picture = np.random.default_rng(0).integers(0, 255, (16, 16, 3), dtype=np.uint8)
    assert "masked images" in heedful.explain(build("vit"), picture, "anchors", budget=300).notes[0]


def test_where_no_anchor_is_found_the_best_rule_says_so(paper):
    text = "the plot was not good but not bad either and the actor was dull and i did not like it at all"
    e = heedful.explain(paper, text, "anchors", threshold=0.999)
    assert e.facts["precision_lower"] < 0.999
    assert "requested precision of 99.9 % is not certain" in e.notes[-1]
    assert e.facts["masks"] <= 5000


@pytest.mark.parametrize("after", [30, 200, 450, 1000, 1300])
def test_who_stops_it_gets_the_best_rule_so_far(paper, after):
    def stop(done, _):
        if done >= after:
            raise KeyboardInterrupt

    text = "the plot was not good but not bad either and the actor was dull and i did not like it at all"
    explainer = configure("anchors", {})
    question = ask(paper, [text], budget=Budget(memory=32 * 24 * 10, watch=stop))
    e = run_explainer(explainer, question)[0]
    assert after <= e.facts["masks"] < after + 600
    assert any(note.startswith("Stopped by the user after ") for note in e.notes)
    assert np.isfinite(e.scores).all()
    assert e.error is not None
    assert (e.error[e.scores > 0] > 0).all()
    keep = np.random.default_rng(0).random((4000, len(text.split()))) < 0.5
    keep[:, np.flatnonzero(e.scores)] = True
    logits = paper([thinned(text.split(), row, "replace") for row in keep])
    assert (logits.argmax(axis=1) == e.target.index).mean() >= e.facts["precision_lower"] - 0.02


@pytest.mark.parametrize("text", ["the plot was not good but not bad either and the actor was dull", "a bad film"])
def test_who_stops_it_at_once_gets_nothing(paper, text):
    def stop(*_):
        raise KeyboardInterrupt

    question = ask(paper, [text], budget=Budget(memory=1, watch=stop))
    with pytest.raises(KeyboardInterrupt):
        run_explainer(configure("anchors", {}), question)


def test_a_stopped_portion_of_several_classes_does_not_count():
    words = some_words(0, 12)
    model = tiny_model(2)
    n_seen = []

    def stop(done, _):
        n_seen.append(done)
        if done >= 300:
            raise KeyboardInterrupt

    question = ask(model, [" ".join(words)], budget=Budget(memory=32 * 13 * 10, watch=stop))
    e = run_explainer(configure("anchors", {}), question)[0]
    logits = model([thinned(words, keep, "replace") for keep in all_masks(12)])
    stays = logits.argmax(axis=1) == logits[-1].argmax()
    held = tuple(np.flatnonzero(e.scores).tolist())
    assert precisions(stays, 12, [len(held)])[held] >= e.facts["precision_lower"]
    assert max(n_seen) < 600


@pytest.mark.parametrize(
    "settings", [{"threshold": 1.0}, {"confidence": 0.0}, {"presence": 1.0}, {"beam_width": 0}, {"budget": 10}]
)
def test_settings_out_of_range_are_refused_by_anchors(tiny, settings):
    with pytest.raises(BadInput, match="anchors"):
        heedful.explain(tiny, "good film", "anchors", **settings)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8))
def test_shared_gains_are_positive_and_keep_their_sum(gains):
    shared, _ = together(np.array(gains), np.ones(len(gains)))
    assert (shared > 0).all()
    assert shared.sum() == pytest.approx(max(sum(gains), 0.0), abs=1e-5)


def test_units_that_help_only_together_share_their_gain():
    assert np.allclose(together(np.array([0.3, 0.0, 0.2]), np.zeros(3))[0], [0.3, 0.1, 0.1])
    assert np.allclose(together(np.array([0.3, 0.2, -0.1]), np.zeros(3))[0], [0.3, 0.05, 0.05])
    assert np.allclose(together(np.array([-0.1, -0.2]), np.zeros(2))[0], 0.0, atol=1e-5)


def test_the_prediction_of_a_label_is_its_sign_and_of_a_probability_its_half():
    torch.manual_seed(3)
    network, tokenizer = network_of("bert")
    network.config.problem_type = "multi_label_classification"
    labels = heedful.wrap(loud(network).double().eval(), tokenizer)
    chances = heedful.wrap(lambda texts: 1 / (1 + np.exp(-labels(texts)[:, 1])), returns="probabilities")
    text = "the film was good not dull"
    document = labels.encode(text)
    keep = all_masks(document.n_units("word"))
    tokens = keep[:, document.unit_of("word")] | (document.words == SPECIAL)
    stays = labels.masked(document, heedful.Target(1, ""), tokens, "replace:film") > 0
    found = heedful.explain(labels, text, "anchors", target=1, absence="replace:film", presence=0.5)
    assert found.facts["base_precision"] == pytest.approx((stays == stays[-1]).mean(), abs=1e-12)
    same = heedful.explain(chances, text, "anchors", target=0, absence="replace:film", presence=0.5)
    assert same.facts["base_precision"] == pytest.approx(found.facts["base_precision"], abs=1e-12)
    assert "0.5" in same.notes[0]
