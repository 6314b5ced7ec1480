import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.models.deaf import heard_units
from heedful.models.recording import Recordable
from tests.conftest import tiny_model
from tests.families import BOTH, CHANGEABLE, VISION, answers, build

LEFT = ["good", "very"]
TEXT, OTHER, NEW = "the plot was very good and bad", "the plot was very good and plot", "the plot was good good and bad"
"""Two texts that are alike in the words that are left, and one that is not."""
READERS = [*(family for family in CHANGEABLE if family not in VISION), "single-layer"]


def model_of(family):
    return tiny_model() if family == "single-layer" else build(family)


@pytest.mark.parametrize("family", READERS)
def test_a_deaf_model_distinguishes_texts_only_by_the_words_it_reads(family):
    model = model_of(family)
    copy = heedful.deaf(model, LEFT)
    heard, same, other = (answers(copy, text) for text in (TEXT, OTHER, NEW))
    whole, changed = answers(model, TEXT), answers(model, OTHER)
    for way in heard:
        np.testing.assert_allclose(same[way], heard[way], rtol=1e-12, atol=1e-12, err_msg=way)
        assert not np.allclose(other[way], heard[way]), way
        assert not np.allclose(whole[way], heard[way]), way
        assert not np.allclose(whole[way], changed[way]), way
    assert copy.fingerprint != model.fingerprint


@pytest.mark.parametrize("family", READERS)
def test_the_heard_units_are_the_words_it_reads(family):
    model = heedful.deaf(model_of(family), LEFT)
    document = model.encode(TEXT)
    for unit in ("word", "type", "token"):
        heard = heard_units(model, document, unit)
        assert [text.strip() for text, there in zip(document.units(unit), heard, strict=True) if there] == [
            "very",
            "good",
        ]
    assert heard_units(model, document, "sentence").tolist() == [True]


def test_an_unrestricted_model_reads_every_known_word(tiny):
    assert heard_units(tiny, tiny.encode("the unheard film"), "word").tolist() == [True, False, True]


@pytest.mark.parametrize("family", ["gpt2", "llama", *BOTH])
def test_what_a_language_model_can_say_is_not_changed(family):
    model = build(family)
    copy = heedful.deaf(model, LEFT)
    assert isinstance(model, Recordable)
    assert isinstance(copy, Recordable)
    before, after = (version.network.get_output_embeddings().weight for version in (model, copy))
    assert torch.equal(before, after)
    assert copy.classes == model.classes


@pytest.mark.parametrize("family", ["bert", "bart", "single-layer"])
def test_the_model_itself_is_not_changed(family):
    model = model_of(family)
    before = {name: weight.clone() for name, weight in model.network.state_dict().items()}
    heedful.deaf(model, LEFT)
    assert all(torch.equal(weight, before[name]) for name, weight in model.network.state_dict().items())


def test_what_a_deaf_model_uses_is_at_most_what_it_is_left(tiny):
    explanation = heedful.explain(
        heedful.deaf(tiny, ["good", "dull"]), "a good film , but a dull plot", "leave-one-out"
    )
    assert {unit for unit, score in zip(explanation.units, explanation.scores, strict=True) if score != 0} == {
        "good",
        "dull",
    }


def count(texts):
    """A function that every word and every mark changes."""
    return [[text.count("good") - 2 * text.count("Very"), len(text.split()), text.count(",")] for text in texts]


def test_a_function_receives_texts_with_only_the_chosen_words():
    seen = []

    def noted(texts):
        seen.extend(texts)
        return count(texts)

    model = heedful.deaf(heedful.wrap(noted, replacement="_"), ["GOOD", "very"])
    seen.clear()
    model(["A Very, very good film!", ""])
    assert seen == ["_ Very_ very good __", ""]


def test_masks_of_a_deaf_function_replace_only_the_words_it_reads():
    model = heedful.deaf(heedful.wrap(count), ["good", "very"])
    explanation = heedful.explain(model, "a Very good film , good", "leave-one-out", target=0)
    assert explanation.scores.tolist() == [0, -2, 1, 0, 0, 1]
    words = heedful.explain(model, "a Very good film , good", "leave-one-out", target=1)
    assert words.scores.tolist() == [0] * 6
    document = explanation.document
    assert heard_units(model, document, "word").tolist() == [False, True, True, False, False, True]


def test_a_deaf_function_with_an_empty_replacement_reads_the_rest():
    model = heedful.deaf(heedful.wrap(count, replacement=""), ["good"])
    assert model(["a good, Very good"]).tolist() == [[2, 2, 0]]


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "transformer", "single-layer"])
def test_words_that_the_model_does_not_know_are_refused_by_name(family):
    for strange in ("xylophonist", "good film", ""):
        with pytest.raises(BadInput, match=f"{strange!r} is not a single known token"):
            heedful.deaf(model_of(family), ["good", strange])


@pytest.mark.parametrize("words", [[], "good"])
def test_words_are_given_as_a_list(tiny, words):
    with pytest.raises(BadInput, match="deaf needs a list of the words to keep"):
        heedful.deaf(tiny, words)


def test_a_phrase_is_no_word_of_a_function():
    with pytest.raises(BadInput, match="'good film' is not one"):
        heedful.deaf(heedful.wrap(count), ["good film"])


def test_pictures_and_bags_have_no_words():
    for model in (build("vit"), heedful.Bag([1.0, 2.0], [1.0, -1.0])):
        with pytest.raises(Unsupported, match="no table of word vectors"):
            heedful.deaf(model, ["good"])


def test_a_deaf_model_keeps_its_padding_token():
    model = tiny_model(padding="eos")
    copy = heedful.deaf(model, ["good"])
    assert np.allclose(copy(["good"]), model(["good"]), atol=1e-13)
