"""The bundled model "reviews", as shipped."""

import hashlib
import re
from importlib.resources import files

import numpy as np
import pytest

import heedful
from heedful.datasets.sst import Sst
from heedful.models.encoder.classifier import EncoderClassifier

HOME = files("heedful.models") / "checkpoints"


@pytest.fixture(scope="module")
def reviews():
    model = heedful.load("reviews")
    assert isinstance(model, EncoderClassifier)
    return model


def positive(model, texts):
    logits = model(texts)
    return logits[:, 1] - logits[:, 0]


def test_card_names_the_file_by_its_hash_and_it_is_small(reviews):
    content, card = (HOME / "reviews.safetensors").read_bytes(), (HOME / "reviews.md").read_text()
    assert len(content) <= 16_000_000
    assert f"`{hashlib.sha256(content).hexdigest()}`" in card
    assert f"`{reviews.fingerprint}`" in card


def test_short_texts_are_judged_as_anybody_would(reviews):
    assert reviews.classes == ("negative", "positive")
    dull, superb, empty = positive(reviews, ["a dull film", "superb", ""])
    assert dull < -1
    assert superb > 1
    assert abs(empty) < 0.2


def test_the_sentences_of_the_card_have_the_differences_that_it_states(reviews):
    rows = re.findall(
        r"^\| (.+) \| (negative|positive) \| ([+-][0-9.]+) \| (\w*) \|$", (HOME / "reviews.md").read_text(), re.M
    )
    assert len(rows) == 40
    differences = positive(reviews, [text for text, *_ in rows])
    assert np.allclose(differences, [float(stated) for *_, stated, _ in rows], atol=0.01)
    wrong = [text for (text, label, *_), x in zip(rows, differences, strict=True) if (x > 0) != (label == "positive")]
    assert wrong == [text for text, *_, mark in rows if mark]
    assert len(wrong) <= 2


@pytest.mark.slow
def test_accuracy_is_what_the_card_states(reviews, data_folder):
    card = (HOME / "reviews.md").read_text()
    stated = re.findall(r"\*\*([0-9.]+)% \[([0-9.]+)%, ([0-9.]+)%\]\*\* on", card)
    assert len(stated) == 2
    assert [float(accuracy) >= least for (accuracy, *_), least in zip(stated, (91, 86), strict=True)] == [True, True]
    sentences = sorted(Sst().examples("validation"), key=lambda example: len(example.text))
    # Sorted and in portions, so that there is little padding.
    portions = [sentences[start : start + 50] for start in range(0, len(sentences), 50)]
    differences = np.concatenate([positive(reviews, [example.text for example in some]) for some in portions])
    right = (differences > 0) == [example.label == 1 for example in sentences]
    assert abs(right.mean() - float(stated[1][0]) / 100) < 0.004, "SST spells some words otherwise than SST-2"
