import pytest

import heedful
from heedful.errors import BadCheckpoint, BadInput
from heedful.features import bundled
from heedful.features.card import Card
from tests.features.dictionaries import random_dictionary


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a dictionary of each of two bundled models."""
    for name in ("reviews", "writer"):
        card = Card("topk", model=heedful.load(name).fingerprint, model_name=name, layer=3)
        random_dictionary(20, 256, card=card).save(tmp_path / f"{name}.safetensors", half=True)
        (tmp_path / f"{name}.md").write_text("# Card\n", encoding="utf-8")
    monkeypatch.setattr(bundled, "_FOLDER", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["reviews", "writer"])
def test_a_bundled_dictionary_comes_with_its_model(folder, name):
    dictionary = heedful.features.load(name)
    assert dictionary.model.fingerprint == dictionary.card.model == heedful.load(name).fingerprint
    assert dictionary.width == 20


def test_the_model_may_be_given(folder):
    model = heedful.load("reviews")
    assert heedful.features.load("reviews", model).model is model
    with pytest.raises(BadInput, match="belongs to the model"):
        heedful.features.load("writer", model)


def test_a_layer_that_it_does_not_belong_to_is_refused(folder):
    with pytest.raises(BadInput, match="leave layer and part out"):
        heedful.features.load("reviews", layer=40)


def test_another_name_is_refused_with_those_that_there_are(folder):
    with pytest.raises(BadCheckpoint) as error:
        heedful.features.load("review")
    assert str(error.value) == (
        "review contains no dictionary; give a folder or file that `save` wrote, "
        "or the name of a bundled one (reviews, writer)."
    )


def test_every_bundled_dictionary_is_whole_and_has_a_card():
    for name, path in bundled.bundled().items():
        dictionary = heedful.features.load(name)
        assert dictionary.card.model == heedful.load(name).fingerprint
        assert dictionary.card.metrics
        assert path.with_suffix(".md").is_file()
