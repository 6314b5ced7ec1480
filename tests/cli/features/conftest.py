"""A dictionary that nobody trained, of the bundled model of film reviews."""

from dataclasses import replace

import pytest

import heedful
from heedful.features.activations import find_site, text_rows
from heedful.features.card import Card
from tests.features.dictionaries import random_dictionary

LINES = ("a fine film , but too long", "a dull film", "the actors were good", "not a good story", "a bad , long plot")


@pytest.fixture(scope="session")
def reviews_dictionary():
    model = heedful.load("reviews")
    rows = text_rows(model, [model.encode(line) for line in LINES], find_site(model, "residual", 3)).x
    card = Card("topk", model=model.fingerprint, model_name="reviews", layer=3)
    own = random_dictionary(40, rows.shape[1], card=card)
    return replace(own, W_enc=2 * own.W_enc / rows.std(), b_dec=rows.mean(dim=0), density=own.largest + 0.1)


@pytest.fixture
def reviews_folder(reviews_dictionary, tmp_path):
    reviews_dictionary.save(tmp_path / "dictionary")
    return tmp_path / "dictionary"


@pytest.fixture
def texts_file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return path
