import numpy as np
import pandas as pd
import pytest

from heedful.datasets import Example
from heedful.errors import BadInput, UnknownName
from heedful.evaluation.sample import FEW_WORDS, draw, fitted, fitting_labels, shortened
from heedful.generation.as_model import continuation
from tests.families import build

TEXTS = [f"text {n}" for n in range(10)]


def test_a_sample_is_drawn_once_and_in_order():
    sample = draw(TEXTS, 4, "test", 0)
    assert len(set(sample.places)) == 4
    assert list(sample.places) == sorted(sample.places)
    assert sample.texts == tuple(TEXTS[place] for place in sample.places)
    assert sample == draw(TEXTS, 4, "test", 0)
    assert sample.places != draw(TEXTS, 4, "test", 1).places


def test_labels_come_with_the_texts():
    assert draw([("a", 0), ("b", np.int64(1))], 2, "test", 0).labels == (0, 1)
    marked = draw([Example("a b", 0, ((0, 1),)), Example("c", 1)], 2, "test", 0)
    assert marked.rationales == (((0, 1),), None)
    assert marked.notes == ()


def test_what_a_reader_must_know_is_noted():
    assert len(draw([(f"text {n}", n % 2) for n in range(300)], None, "test", 0).texts) == 200
    assert draw([("a", 0), ("b", 1)], None, "test", 0).notes == ()
    two = ("negative", "positive")
    assert "no labels" in fitting_labels(draw(TEXTS, 4, "test", 0), two).notes[0]
    assert "same label" in fitting_labels(draw([("a", 1), ("b", 1)], 2, "test", 0), two).notes[0]
    assert "200 texts were requested, but only 2 are available" in draw(["a", "b"], 200, "test", 0).notes[0]


def test_a_text_that_is_repeated_counts_once_and_it_is_said():
    sample = draw([*["same"] * 40, *TEXTS], None, "test", 0)
    assert sorted(sample.texts) == sorted(["same", *TEXTS])
    assert sample.notes[0] == "Copies of other texts were left out: 39. Each text counts once."
    assert len(draw([*["same"] * 40, *TEXTS], 8, "test", 0).texts) == 8
    with pytest.raises(BadInput, match="at least 2 different texts; all 40 of the given texts are the same"):
        draw(["same"] * 40, None, "test", 0)


@pytest.mark.parametrize("given", [[], ["a"]])
def test_too_few_texts_are_refused(given):
    with pytest.raises(BadInput, match="at least 2 texts"):
        draw(given, 5, "test", 0)


def test_nonsense_is_refused():
    with pytest.raises(BadInput, match="at least 2 texts"):
        draw(TEXTS, 1, "test", 0)
    with pytest.raises(UnknownName, match="imdb"):
        draw("imbd", 5, "test", 0)
    with pytest.raises(BadInput, match="int was given"):
        draw(7, 5, "test", 0)


def test_labels_are_those_of_the_model():
    sample = draw([("a", 0), ("b", 1)], 2, "test", 0)._replace(classes=("negative", "positive"))
    assert fitting_labels(sample, ("negative", "positive")) == sample
    assert fitting_labels(sample, ("Positive", "Negative")).labels == (1, 0)
    assert fitting_labels(sample, ("LABEL_0", "LABEL_1")).labels == (0, 1)
    other = fitting_labels(sample, ("a", "b", "c"))
    assert other.labels == (None, None)
    assert "3 classes and the data 2" in other.notes[-1]


def test_prompts_have_no_labels():
    written, unlabelled = continuation(build("gpt2")), draw(TEXTS, 4, "test", 0)
    assert fitted(unlabelled, written) is unlabelled
    prompts = fitted(draw([("a", 0), ("b", 1)], 2, "test", 0), written)
    assert prompts.labels == (None, None)
    assert prompts.notes == ("The labels were not used: the model writes text after each text.",)


def test_a_sample_of_long_texts_is_shortened_to_a_random_part():
    sample = draw([(f"{n}" + " word" * 499, n % 2) for n in range(60)], None, "test", 0)
    part = shortened(sample, 0)
    assert len(part.texts) == FEW_WORDS // 500
    assert set(part.places) < set(sample.places)
    assert list(part.places) == sorted(part.places)
    assert part.labels == tuple(place % 2 for place in part.places)
    assert part.notes[-1].startswith("20 of 60 texts were measured")
    assert shortened(draw(TEXTS, None, "test", 0), 0) == draw(TEXTS, None, "test", 0)
    assert draw(part, 3, "test", 5) is part


def test_a_table_is_its_texts_and_labels_are_classes_by_name():
    frame = pd.DataFrame({"comment": ["a fine film", "a dull one", "so so"], "label": ["Positive", "negative", None]})
    sample = draw(frame, None, "test", 0)
    assert sample.texts == ("a fine film", "a dull one", "so so")
    assert sample.name == "the DataFrame"
    assert fitting_labels(sample, ("negative", "positive")).labels == (1, 0, None)
    with pytest.raises(BadInput, match="row 1: the label must be a class of the model"):
        fitting_labels(sample, ("spam", "ham"))


def test_what_labels_mean_does_not_depend_on_the_sample():
    labels = [0, *[1, 2, 3, 4] * 9]
    sample = draw([(f"text {n}", label) for n, label in enumerate(labels)], 10, "test", 3)
    assert 0 not in sample.labels
    assert fitting_labels(sample, ("1", "2", "3", "4", "5")).labels == tuple(labels[place] for place in sample.places)
