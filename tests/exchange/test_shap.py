"""Explanations of shap, read in."""

import warnings

import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from tests.families import build

TEXT = "a very bad unbelievable story , but not dull !"


@pytest.fixture(scope="module")
def shap():
    with warnings.catch_warnings():
        # shap warns of what it uses itself.
        warnings.simplefilter("ignore")
        import shap
    return shap


def partition(shap, model, texts, splitter, function=None):
    masker = shap.maskers.Text(splitter)
    names = list(model.classes) if function is None else None
    explainer = shap.Explainer(function or (lambda given: model(list(given))), masker, output_names=names)
    return explainer(texts, max_evals=60, silent=True)


@pytest.fixture(scope="module")
def bert():
    return build("bert")


@pytest.fixture(scope="module")
def theirs(shap, bert):
    return partition(shap, bert, [TEXT], bert.tokenizer)


def test_the_pieces_of_a_text_are_summed_to_words(theirs, bert):
    read = heedful.read(bert, TEXT, theirs, target="good")
    values = theirs.values[0, :, bert.classes.index("good")]
    words = bert.encode(TEXT).words
    assert (read.method, read.unit, read.signed) == ("shap (read)", "word", True)
    assert np.allclose(read.scores, [values[words == word].sum() for word in range(10)], atol=1e-12)
    assert read.facts["base"] == theirs.base_values[0, bert.classes.index("good")]
    assert read.facts["[CLS]"] == values[0]
    # Shapley values add up to the output, so shap explained the logit that was asked for.
    assert read.facts["base"] + values.sum() == pytest.approx(read.output, abs=1e-6)
    assert read.notes == ()
    tokens = heedful.read(bert, TEXT, theirs, target="good", unit="token")
    assert tokens.scores.tolist() == values[1:-1].tolist()


def test_a_row_and_a_class_cut_out_say_the_same(theirs, bert):
    whole = heedful.read(bert, TEXT, theirs, target="good")
    for cut in (theirs[0], theirs[0, :, "good"], theirs[:, :, "good"], theirs[0, :, 1]):
        assert heedful.read(bert, TEXT, cut, target="good").scores.tobytes() == whole.scores.tobytes()
    for name in bert.classes:
        assert heedful.read(bert, TEXT, theirs[0, :, name]).target.name == name
    with pytest.raises(BadInput, match="^shap explained good, but the target is bad; pass the same class, or none"):
        heedful.read(bert, TEXT, theirs[0, :, "good"], target="bad")
    contrast = heedful.read(bert, TEXT, theirs, target="good", against="bad")
    bad = heedful.read(bert, TEXT, theirs, target="bad")
    assert np.allclose(contrast.scores, whole.scores - bad.scores, atol=1e-12)
    assert contrast.facts["base"] == pytest.approx(whole.facts["base"] - bad.facts["base"])


@pytest.mark.slow
def test_pieces_that_are_no_tokens_of_the_model_find_their_words(shap, paper):
    text = "Don't miss it: a bad story, but not dull!"
    theirs = partition(shap, paper, [text], r"\W+", lambda given: paper(list(given))[:, 1])
    read = heedful.read(paper, text, theirs[0], target="positive")
    scores = dict(zip(read.units, read.scores, strict=True))
    values = dict(zip(theirs[0].data, theirs[0].values, strict=True))
    assert {piece: scores[piece.strip(" ,:'")] for piece in values} == pytest.approx(values)
    assert [scores[mark] for mark in ",:!'" if mark in scores] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("text", ["Good film 😀, שלום עולם naïve café", "a 好看 好看"])
def test_any_script_is_read(shap, bert, text):
    theirs = partition(shap, bert, [text], bert.tokenizer)
    read = heedful.read(bert, text, theirs, target=1)
    assert read.scores.sum() + read.facts["[CLS]"] + read.facts["[SEP]"] == pytest.approx(theirs.values[0, :, 1].sum())


def test_what_we_gave_to_shap_comes_back(tiny, shap):
    for unit in ("word", "token"):
        ours = heedful.explain(tiny, "good film was  good, dull", "shapley-exact", target=1, unit=unit)
        read = heedful.read(tiny, ours.document.text, ours.to_shap(), target=1)
        assert np.allclose(read.scores, ours.to("word").scores, atol=1e-12)


def test_values_without_pieces_are_plain_numbers(shap, bert):
    values = np.arange(10.0)
    for given in (shap.Explanation(values), shap.Explanation(values, data=np.ones(10)), shap.Explanation(values[None])):
        assert heedful.read(bert, TEXT, given).scores.tolist() == values.tolist()
    with pytest.raises(BadInput, match="^11 numbers were given; the text has 10 words and 17 tokens"):
        heedful.read(bert, TEXT, shap.Explanation(np.arange(11.0)))


def test_what_does_not_fit_is_refused(shap, bert, theirs):
    many = partition(shap, bert, ["good film", "a bad plot"], r"\W+")
    with pytest.raises(BadInput, match=r"is of 2 texts; give one of them, such as e\[0\]"):
        heedful.read(bert, "good film", many)
    assert heedful.read(bert, "a bad plot", many[1]).units == ("a", "bad", "plot")
    with pytest.raises(BadInput, match="'a ', piece 2 of 19, does not come next in the text"):
        heedful.read(bert, "good film", theirs[0])
    odd = shap.Explanation(np.ones((2, 5)), data=["good ", "film"])
    with pytest.raises(BadInput, match="^shap explained 5 outputs, but the model has 3 classes; select one"):
        heedful.read(bert, "good film", odd)
