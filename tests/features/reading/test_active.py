import numpy as np
import pytest
import torch

import heedful
from heedful.errors import BadInput, Unsupported
from heedful.features.activations import find_site, text_rows
from heedful.features.reading import active
from heedful.features.reading.active import active_features, read_tokens
from tests.families import TEXTS, build, pictures
from tests.features.random_dictionaries import random_dictionary

LINES = [*TEXTS, "", "good\nfilm", "an actor was not very good ; the plot was bad ?"]


def collected(dictionary, most=active.PAIRS):
    read = read_tokens(dictionary.model, dictionary, LINES, [*map(str, range(len(LINES)))])
    return read, [*active_features(dictionary, dictionary.model, read, lambda *_: None, most)]


@pytest.mark.parametrize("family", ["gpt2", "bert", "own-gpt2", "t5"])
def test_the_pairs_are_what_encode_gives_for_each_text_alone(family):
    model = build(family)
    dictionary = random_dictionary(model, width=30, k=5)
    read, every = collected(dictionary)
    assert "3" not in read.names
    whole = np.zeros((read.starts[-1], 30))
    for pairs in every:
        whole[pairs.rows, pairs.feature] = pairs.values
    site = find_site(model, "residual", 1)
    for number, document in enumerate(read.documents):
        alone = dictionary.encode(text_rows(model, [document], site).x.numpy())
        assert np.allclose(whole[read.starts[number] : read.starts[number + 1]], alone, atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_the_strongest_features_of_every_token_are_those_of_encode(family):
    model = build(family)
    dictionary = random_dictionary(model, width=30, k=5)
    document = model.encode("a good film")
    s = dictionary.encode(text_rows(model, [document], find_site(model, "residual", 1)).x.numpy())
    tokens = heedful.features.active(dictionary, "a good film", n=4)
    assert "".join(token.token for token in tokens) == "agoodfilm"
    for row, token in zip(s, tokens, strict=True):
        order = [feature for feature in np.argsort(-row, kind="stable")[:4] if row[feature] > 0]
        assert [feature for feature, _ in token.features] == order
        assert [value for _, value in token.features] == pytest.approx(row[order])
    with pytest.raises(BadInput, match="from 1 to 30; 31 was given"):
        heedful.features.active(dictionary, "a good film", n=31)


def test_little_memory_and_small_batches_give_the_same_pairs(monkeypatch):
    dictionary = random_dictionary(build("gpt2"), width=30, k=5)
    _, at_once = collected(dictionary)
    monkeypatch.setattr(active, "_TEXTS_AT_ONCE", 2)
    monkeypatch.setattr(active, "_NUMBERS_AT_ONCE", 60)
    read, in_parts = collected(dictionary, most=20)
    assert [pairs.feature for pairs in in_parts] == [pairs.feature for pairs in at_once]
    for one, other in zip(at_once, in_parts, strict=True):
        assert np.array_equal(one.rows, other.rows)
        assert np.allclose(one.values, other.values, atol=1e-5)
    assert sum(len(pairs.rows) for pairs in in_parts) == 5 * read.starts[-1]


@pytest.mark.parametrize("family", ["gpt2", "bert", "own-gpt2", "encoder"])
def test_the_tokens_joined_are_the_text(family):
    dictionary = random_dictionary(build(family))
    read, _ = collected(dictionary)
    for document, tokens, pieces in zip(read.documents, read.tokens, read.pieces, strict=True):
        assert "".join(tokens) == document.text
        assert len(tokens) == len(pieces)
        assert "\n" not in "".join(pieces)
    words = " ".join(read.pieces[1])
    assert "…" in words
    assert "unbelievable" in words.replace(" …", "")


def test_images_and_empty_texts_are_refused():
    dictionary = random_dictionary(build("gpt2"))
    with pytest.raises(BadInput, match="no tokens but special ones"):
        read_tokens(dictionary.model, dictionary, ["", ""], ["0", "1"])
    vision = random_dictionary(build("vit"))
    with pytest.raises(Unsupported, match="model of images"):
        read_tokens(vision.model, vision, pictures(), ["0", "1", "2"])


def test_a_dead_feature_has_no_pairs():
    dictionary = random_dictionary(build("gpt2"), width=6)
    with torch.no_grad():
        dictionary.W_enc[2] = 0.0
        dictionary.b_enc[2] = -1.0
    _, every = collected(dictionary)
    assert 2 not in [pairs.feature for pairs in every]
