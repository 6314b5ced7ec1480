from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput, UnknownName
from heedful.features.card import Card
from heedful.features.reading import active, describing
from tests.families import build
from tests.features.random_dictionaries import random_dictionary
from tests.features.reading.planted import planted_dictionary, planted_model, random_texts

TEXTS = random_texts(60)
PLANTED = [{" good": 2.0}, {" good": 1.0, " bad": 3.0}, {}, {" plot": 0.5}]


@pytest.fixture(scope="module")
def planted():
    return planted_dictionary(planted_model(), PLANTED)


@pytest.fixture(scope="module")
def descriptions(planted):
    return heedful.features.describe(planted, TEXTS)


def count(word):
    """The tokens of a word that a space stands before."""
    return sum(text.split()[1:].count(word) for text in TEXTS)


def test_planted_features_are_described_as_they_were_planted(planted, descriptions):
    assert [own.feature for own in descriptions] == [0, 1, 3]
    good, both = descriptions[0], descriptions[1]
    assert good.label == "token: good"
    assert (good.rule.auroc.value, good.rule.precision.value, good.rule.recall.value) == (1.0, 1.0, 1.0)
    assert set(both.rules[0].values) <= {"good", "bad"}
    assert (good.n_tokens, both.n_tokens) == (count("good"), count("good") + count("bad"))
    assert good.n_texts == sum("good" in text.split()[1:] for text in TEXTS)
    assert good.density == count("good") / descriptions.n_tokens
    assert (good.largest, both.largest) == (2.0, 3.0)
    assert both.mean == pytest.approx((count("good") + 3 * count("bad")) / both.n_tokens)
    assert good.excerpts[0].tokens[good.excerpts[0].peak] == " good"


def test_the_histogram_is_numpys(descriptions):
    both = descriptions[1]
    values = [1.0] * count("good") + [3.0] * count("bad")
    assert both.histogram.tolist() == np.histogram(values, describing.N_BINS, (0, 3))[0].tolist()
    assert both.histogram.sum() == both.n_tokens


def test_near_features_have_the_largest_cosines():
    dictionary = random_dictionary(build("gpt2"), width=12)
    cosines = dictionary.directions @ dictionary.directions.T
    np.fill_diagonal(cosines, -2)
    for own in heedful.features.describe(dictionary, TEXTS[:10]):
        order = np.argsort(-cosines[own.feature])[:5]
        assert [number for number, _ in own.neighbours] == order.tolist()
        assert [cosine for _, cosine in own.neighbours] == pytest.approx(cosines[own.feature][order], abs=1e-6)


def test_the_same_call_gives_the_same_bytes_whatever_the_order_of_the_texts(planted, tmp_path):
    one = heedful.features.describe(planted, TEXTS, out=tmp_path / "a.html")
    heedful.features.describe(planted, TEXTS, out=tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    other = heedful.features.describe(planted, TEXTS[::-1])
    for own, turned in zip(one, other, strict=True):
        assert own.label == turned.label
        assert own.rules[0].auroc == pytest.approx(turned.rules[0].auroc, nan_ok=True)


def test_batches_do_not_change_a_description(monkeypatch):
    dictionary = random_dictionary(build("gpt2"), width=12, k=3)
    one = heedful.features.describe(dictionary, TEXTS)
    monkeypatch.setattr(active, "_TEXTS_AT_ONCE", 3)
    monkeypatch.setattr(active, "PAIRS", 100)
    monkeypatch.setattr(describing, "_DIRECTIONS_AT_ONCE", 2)
    for own, other in zip(one, heedful.features.describe(dictionary, TEXTS), strict=True):
        assert (own.label, own.n_tokens, own.histogram.tolist()) == (
            other.label,
            other.n_tokens,
            other.histogram.tolist(),
        )
        assert [own.mean, own.largest] == pytest.approx([other.mean, other.largest], rel=1e-5)
        assert [output.name for output in own.raised] == [output.name for output in other.raised]


def test_n_texts_chooses_by_hash_and_the_seed_draws_the_held_out_texts(planted):
    some = heedful.features.describe(planted, TEXTS, n_texts=20)
    assert some.n_texts <= 20
    assert some.data == "the given texts, 20 texts of 60"
    seeds = [heedful.features.describe(planted, TEXTS, seed=seed)[1].rules[0].recall for seed in (0, 1)]
    assert seeds[0] != seeds[1] or seeds[0].value == 1


def test_a_classifier_is_described_by_its_classes():
    described = heedful.features.describe(random_dictionary(build("bert")), TEXTS[:20])
    names = {output.name for own in described for output in (*own.raised, *own.lowered)}
    assert names == {"bad", "good", "neutral"}
    assert "95 % confidence interval" in described.readout


def test_bad_input_is_a_sentence(planted, descriptions, tmp_path):
    describe = heedful.features.describe
    with pytest.raises(BadInput, match="There are no texts; give at least one"):
        describe(planted, [])
    with pytest.raises(BadInput, match="no tokens but special ones"):
        describe(planted, ["", ""])
    with pytest.raises(BadInput, match="No feature is active in these texts"):
        describe(planted, ["the actor", "the story"])
    with pytest.raises(BadInput, match="belongs to the model"):
        describe(replace(planted, model=None), TEXTS, model=build("gpt2"))
    with pytest.raises(BadInput, match="bound to no model"):
        describe(replace(planted, model=None), TEXTS)
    with pytest.raises(BadInput, match="no known layer"):
        describe(replace(planted, card=Card("relu", model=planted.card.model)), TEXTS)
    with pytest.raises(BadInput, match="The number of texts must be a whole number of at least 1"):
        describe(planted, TEXTS, n_texts=0)
    with pytest.raises(BadInput, match="a folder or to .html"):
        describe(planted, TEXTS, out=tmp_path / "a.pdf")
    with pytest.raises(UnknownName, match="data set"):
        describe(planted, "imbd")
    with pytest.raises(BadInput, match="features 0 to 3; 4 was given"):
        descriptions[4]
    with pytest.raises(BadInput, match="active in none of the tokens"):
        descriptions[2]
    with pytest.raises(BadInput, match="Give the words"):
        descriptions.search(" ")
