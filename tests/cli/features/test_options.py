"""Which dictionary a command opens, and with which model."""

from dataclasses import replace

import pytest

from heedful.cli.features.options import labels_from, open_dictionary
from heedful.errors import BadInput
from heedful.features import bundled


def test_a_dictionary_is_opened_with_the_model_that_was_named(reviews_folder):
    assert open_dictionary(str(reviews_folder), "reviews").model is not None
    with pytest.raises(BadInput, match="belongs to the model"):
        open_dictionary(str(reviews_folder), "writer")


def test_the_bundled_model_that_a_card_names_is_loaded_and_another_must_be_named(reviews_dictionary, tmp_path):
    reviews_dictionary.save(tmp_path)
    assert open_dictionary(str(tmp_path), None).model.fingerprint == reviews_dictionary.card.model
    own = replace(reviews_dictionary.card, model_name="encoder of 6 layers")
    replace(reviews_dictionary, card=own).save(tmp_path)
    assert open_dictionary(str(tmp_path), None).model.fingerprint == own.model
    replace(reviews_dictionary, card=replace(own, model="0123456789abcdef")).save(tmp_path)
    with pytest.raises(BadInput, match="name it with --model"):
        open_dictionary(str(tmp_path), None)


def test_a_bundled_dictionary_knows_its_model(reviews_dictionary, tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "_FOLDER", tmp_path)
    reviews_dictionary.save(tmp_path / "reviews.safetensors", half=True)
    assert open_dictionary("reviews", None).model.fingerprint == reviews_dictionary.card.model


def test_no_labels_are_read_from_the_column_none():
    assert [labels_from(column) for column in ("none", "y", None)] == [False, "y", None]
