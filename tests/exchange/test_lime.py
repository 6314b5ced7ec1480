"""Explanations of the official lime, read in."""

import numpy as np
import pytest
from lime.explanation import DomainMapper
from lime.explanation import Explanation as Official
from lime.lime_text import LimeTextExplainer

import heedful
from heedful.errors import BadInput
from tests.families import build

TEXT = "A fine film, but too long! Not dull, not a film for me, café 😀 שלום."


def probabilities(model):
    def predict(texts):
        logits = np.exp(model(texts))
        return logits / logits.sum(axis=1, keepdims=True)

    return predict


def official(function, text=TEXT, labels=(1,), n_features=99, **settings):
    explainer = LimeTextExplainer(random_state=0, **settings)
    return explainer.explain_instance(text, function, labels=labels, num_features=n_features, num_samples=80)


def test_every_word_has_the_weight_of_lime_s_own_list(paper):
    theirs = official(paper)
    read = heedful.read(paper, TEXT, theirs)
    assert (read.method, read.unit, read.signed, read.target.index) == ("lime (read)", "type", True, 1)
    assert read.facts == {"intercept": theirs.intercept[1]}
    expected = dict.fromkeys(read.units, 0.0)
    for word, weight in theirs.as_list(label=1):
        # lime tells "Not" from "not", the model does not.
        expected[str(word).lower()] += weight
    assert dict(zip(read.units, read.scores, strict=True)) == pytest.approx(expected, abs=1e-12)
    # The list itself says the same, but for the intercept.
    listed = heedful.read(paper, TEXT, theirs.as_list(label=1), target=1)
    assert np.allclose(listed.scores, read.scores, atol=1e-12)
    assert not any("explained a number" in note for note in read.notes)


def test_without_a_bag_every_place_has_its_own_weight(paper):
    theirs = official(paper, bow=False)
    read = heedful.read(paper, TEXT, theirs)
    assert read.unit == "word"
    weights = dict(theirs.local_exp[1])
    indexed = theirs.domain_mapper.indexed_string
    starts = {int(indexed.string_position(number)[0]): weight for number, weight in weights.items()}
    expected = [starts.get(start, 0.0) for start, _ in read.document.word_spans]
    assert np.allclose(read.scores, expected, atol=1e-12)
    assert np.count_nonzero(expected) == len(weights)


def test_words_of_lime_that_are_parts_of_a_model_s_word_are_summed():
    model, text = build("bert"), "the film's plot wasn't un-believable"
    read = heedful.read(model, text, official(model, text))
    weights = dict(official(model, text).as_list(label=1))
    assert dict(zip(read.units, read.scores, strict=True))["film's"] == pytest.approx(weights["film"] + weights["s"])
    characters = heedful.read(model, text, official(model, text, char_level=True, bow=False, mask_string="_"))
    assert characters.unit == "word"
    assert len(characters.scores) == 5


def test_words_without_a_lime_weight_have_a_note(paper):
    read = heedful.read(paper, TEXT, official(paper, n_features=3), unit="word")
    assert np.count_nonzero(read.to("type").scores) == 3
    assert any(note.endswith("words are not among the pieces and have score 0.") for note in read.notes)


def test_an_output_other_than_the_target_has_a_note(paper):
    read = heedful.read(paper, TEXT, official(probabilities(paper)))
    p = probabilities(paper)([TEXT])[0, 1]
    assert read.notes[-1] == (
        f"lime explained an output of {p:.4g} for this text; the logit of positive is {read.output:.4g}."
    )


def test_the_target_s_class_is_taken(paper):
    both = official(paper, labels=(0, 1))
    negative, positive = (heedful.read(paper, TEXT, both, target=label) for label in (0, "positive"))
    assert not np.allclose(negative.scores, positive.scores)
    contrast = heedful.read(paper, TEXT, both, target=1, against=0)
    assert np.allclose(contrast.scores, positive.scores - negative.scores, atol=1e-12)
    assert heedful.read(paper, TEXT, both).target == heedful.explain(paper, TEXT, "random").target
    with pytest.raises(BadInput, match="^lime explained positive, but the target is negative; pass the same class"):
        heedful.read(paper, TEXT, official(paper), target="negative")


def test_a_model_of_one_number_is_lime_s_second_class():
    model, text = build("single-logit"), "the film was good"

    def two(texts):
        p = 1 / (1 + np.exp(-model(texts)))
        return np.concatenate([1 - p, p], axis=1)

    theirs = official(two, text)
    read = heedful.read(model, text, theirs)
    assert dict(read.as_list()) == pytest.approx({str(word): weight for word, weight in theirs.as_list(label=1)})


def test_another_text_or_no_text_is_refused(paper):
    with pytest.raises(BadInput, match="^lime explained another text: it has 'A fine film, but' where this one has"):
        heedful.read(paper, "A fine plot", official(paper, "A fine film, but"))
    with pytest.raises(BadInput, match="of a table or an image; only explanations of texts can be read"):
        heedful.read(paper, TEXT, Official(DomainMapper()))
