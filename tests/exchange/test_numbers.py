"""Plain numbers find their units by how many they are, and what is wrong with them is said."""

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput
from tests.families import PAIR, build, pictures

TEXT = "a very bad unbelievable story , but not a bad plot !"
"""12 words, 10 different; 19 tokens, of which 8 make up one word; with [CLS] and [SEP] 21."""


@pytest.fixture(scope="module")
def bert():
    return build("bert")


def ramp(*shape):
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize(("n", "unit"), [(12, "word"), (10, "type"), (19, "token"), (2, "segment"), (1, "sentence")])
def test_as_many_numbers_as_units_are_theirs(bert, n, unit):
    values = ramp(n)
    for given in (values, values.tolist(), tuple(values), torch.from_numpy(values), values.astype(np.float32)[None]):
        e = heedful.read(bert, TEXT, given)
        assert (e.unit, e.method, e.error, dict(e.facts), dict(e.settings)) == (unit, "numbers (read)", None, {}, {})
        assert np.allclose(e.scores, values, atol=1e-7)
    assert e.model == bert.fingerprint
    assert e.output == heedful.explain(bert, TEXT, "random").output


def test_numbers_may_include_special_tokens_which_go_to_the_facts(bert):
    values = ramp(21)
    e = heedful.read(bert, TEXT, values)
    assert e.unit == "token"
    assert e.scores.tolist() == values[1:-1].tolist()
    assert e.facts == {"[CLS]": values[0], "[SEP]": values[-1]}


def test_vectors_are_summed(bert):
    for shape in ((19, 16), (21, 16), (1, 21, 16), (1, 19, 16)):
        values = ramp(*shape)
        row = values.reshape(shape[-2], 16).sum(axis=1)
        e = heedful.read(bert, TEXT, torch.from_numpy(values).requires_grad_())
        assert np.allclose(e.scores, row[1:-1] if len(row) == 21 else row)
    assert np.allclose(heedful.read(bert, TEXT, (torch.from_numpy(values),)).scores, row)
    column = ramp(12, 1)
    assert heedful.read(bert, TEXT, column).scores.tolist() == column[:, 0].tolist()


@pytest.mark.parametrize("unit", ["word", "type", "segment", "sentence"])
def test_numbers_of_finer_units_are_summed_to_the_requested_unit(bert, unit):
    fine = heedful.explain(bert, TEXT, "gradient-x-input", unit="token")
    special = np.concatenate([[fine.facts["[CLS]"]], fine.scores, [fine.facts["[SEP]"]]])
    for given in (fine.scores, special, fine.to("word").scores):
        assert np.allclose(heedful.read(bert, TEXT, given, unit=unit).scores, fine.to(unit).scores, atol=1e-12)


def test_a_model_without_sub_words_calls_its_tokens_words(paper):
    for n in (4, 5):
        assert heedful.read(paper, "a fine dull film", ramp(n)).unit == "word"


def test_pictures_have_patches_in_a_row_or_on_their_grid():
    model, picture = build("vit"), pictures()[0]
    values = ramp(4, 4)
    for given in (values, values.ravel(), values[None], np.concatenate([[7.0], values.ravel()])):
        e = heedful.read(model, picture, given)
        assert e.unit == "patch"
        assert e.scores.tolist() == values.ravel().tolist()
    with pytest.raises(BadInput, match="^5 numbers were given; the image has 16 patches, 4 × 4; "):
        heedful.read(model, picture, ramp(5))


def test_a_pair_is_one_row():
    model = build("bert")
    document = model.encode(PAIR)
    values = ramp(len(document.ids))
    e = heedful.read(model, PAIR, values)
    assert e.scores.tolist() == values[document.words >= 0].tolist()
    assert e.facts["[SEP]"] == pytest.approx(values[[6, 10]].sum())


def test_a_text_that_the_model_cut_has_the_units_that_it_read():
    model = build("bert")
    text = "good film " * 60
    document = model.encode(text)
    assert len(document.ids) == 64
    assert heedful.read(model, text, ramp(64)).scores.shape == (62,)
    with pytest.raises(BadInput) as error:
        heedful.read(model, text, ramp(122))
    assert str(error.value) == (
        "122 numbers were given; the text has 62 words (2 different) and 62 tokens, [CLS] and [SEP] included "
        "64; only 64 of 122 tokens were read; the text is longer than the model's limit."
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            [1.0] * 17,
            "17 numbers were given; the text has 12 words (10 different) and 19 tokens, [CLS] and [SEP] included 21; "
            "give one per unit, without padding.",
        ),
        ([], "No numbers were given; give one per unit of the text."),
        (np.zeros((0, 3)), "No numbers were given; give one per unit of the text."),
        ([True] * 12, "Scores must be numbers; True or False was given."),
        ([0.5, True] * 6, "Scores must be numbers; True or False was given."),
        (torch.ones(12, dtype=torch.bool), "Scores must be numbers; True or False was given."),
        (["0.5"] * 12, "Scores must be numbers, one per unit; a list with '0.5' was given."),
        ([1.0, None], "Scores must be numbers, one per unit; a list with None was given."),
        ([[1.0], [1.0, 2.0]], "Scores must be numbers, one per unit; a list with [1.0] was given."),
        (np.ones(12) * 1j, "Scores must be numbers, one per unit; ndarray was given."),
        (None, "Scores must be numbers, one per unit; NoneType was given."),
        ([1.0] * 11 + [float("nan")], "Number 12 of 12 is nan; give finite numbers."),
        (np.array([1.0, -np.inf]), "Number 2 of 2 is -inf; give finite numbers."),
        (
            np.ones((3, 12)),
            "Numbers of shape (3, 12) were given; give one number per unit of one text, or tokens × embedding; the "
            "text has 12 words (10 different) and 19 tokens, [CLS] and [SEP] included 21.",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(bert, given, sentence):
    with pytest.raises(BadInput) as error:
        heedful.read(bert, TEXT, given)
    assert str(error.value) == sentence


def test_where_two_units_fit_one_must_be_named(paper):
    text = "bad , bad ,"
    with pytest.raises(
        BadInput, match='^2 numbers were given, and the text has as many different words as segments; set .*"type"'
    ):
        heedful.read(paper, text, [1.0, 2.0])
    assert heedful.read(paper, text, [1.0, 2.0], unit="segment").unit == "segment"
    with pytest.raises(BadInput, match="images have patches or segments"):
        heedful.read(paper, text, [1.0, 2.0], unit="patch")
