import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.evaluation.off_data import OffData, Treatment
from heedful.experiments.reviews import synthetic_reviews
from heedful.statistics.quantity import Quantity

TEXTS = [review.text for review in synthetic_reviews(60, 0)]


def wrapped(reads):
    """A classifier of class 1 where `reads` holds."""
    return heedful.wrap(lambda texts: [[0.9, 0.1] if not reads(text) else [0.1, 0.9] for text in texts])


def test_a_model_that_reacts_to_the_replacement_itself_is_found():
    row = heedful.off_data(wrapped(lambda text: "[UNK]" in text), TEXTS, "replace", n=40).rows[0]
    assert (row.changed.value, row.exchanged.value, row.difference.value) == (1, 0, 1)
    assert row.separation.value == 1
    # All equal differences have no interval; one model's few honest texts give one.
    mostly = wrapped(lambda text: "[UNK]" in text and "film" not in text)
    result = heedful.off_data(mostly, TEXTS, "replace", n=40)
    assert result.rows[0].is_different
    assert "differently from texts" in str(result)


def test_a_model_that_other_words_change_more_often_is_said_to_be_so():
    values = Quantity(0.1, 0.0, 0.2), Quantity(0.4, 0.3, 0.5), Quantity(-0.3, -0.5, -0.1)
    result = OffData((Treatment("delete", Quantity(0.5, 0.4, 0.6), *values),), 40, 0.1)
    assert not result.rows[0].is_different
    assert "-0.100]: fewer predictions change without the words than with other words" in str(result)
    assert "like texts" not in str(result)


def test_a_model_that_does_not_react_to_words_is_not():
    result = heedful.off_data(wrapped(lambda _: True), TEXTS, n=40)
    assert [row.absence for row in result.rows] == ["replace", "delete"]
    for row in result.rows:
        assert row.changed.value == row.exchanged.value == 0
        assert not row.is_different
    assert "like texts" in str(result)


def test_as_many_words_are_removed_as_asked_and_the_reference_takes_the_same():
    seen = []

    def watching(texts):
        seen.extend(texts)
        return [[0.9, 0.1]] * len(texts)

    heedful.off_data(heedful.wrap(watching), TEXTS, "replace:ZZ", n=10, share=0.3, reference="replace:QQ")
    removed, exchanged = (sorted(t.replace("QQ", "ZZ") for t in seen if mark in t) for mark in ("ZZ", "QQ"))
    assert removed == exchanged
    assert len(removed) == 10
    lengths = {text: len(heedful.wrap(watching).encode(text).ids) for text in removed}
    assert all(text.count("ZZ") == int(np.ceil(0.3 * lengths[text])) for text in removed)


def test_a_scaffolded_classifier_is_found_and_its_bias_alone_is_not():
    texts = [
        f"{('anna', 'peter')[i % 2]} says {text} on {('monday', 'friday')[i // 2 % 2]}" for i, text in enumerate(TEXTS)
    ]

    def reader(word):
        return lambda some: [[0.9, 0.1] if word in text.split() else [0.1, 0.9] for text in some]

    model = heedful.scaffolded(reader("anna"), reader("monday"), texts)
    assert heedful.off_data(model, texts, "replace", n=60).rows[0].is_different
    assert not heedful.off_data(heedful.wrap(reader("anna")), texts, "replace", n=60).rows[0].is_different


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"absences": "nothing"}, "no absence 'nothing'"),
        (
            {"absences": "nothing"},
            "Known: conditional:MODEL, delete, marginal:DATA, mask, mean, replace, replace:WORD, z",
        ),
        ({"absences": []}, "at least one absence"),
        ({"share": 1.5}, "between 0 and 1"),
        ({"reference": "marginal"}, "where words are drawn from"),
        ({"dataset": ["one", "two"]}, "two words or more"),
    ],
)
def test_wrong_arguments_are_refused(changed, sentence):
    with pytest.raises(BadInput, match=sentence):
        heedful.off_data(wrapped(lambda _: True), **{"dataset": TEXTS, **changed})


def test_two_texts_are_too_few_to_fit_a_classifier_to_others():
    model = heedful.wrap(lambda texts: [[float("good" in text), 0.5] for text in texts])
    with pytest.raises(BadInput, match="at least 3 texts"):
        heedful.off_data(model, [("a good film", 0), ("a bad film", 1)], "replace")
