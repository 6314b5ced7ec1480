"""The bundled model "writer", as shipped."""

import hashlib
import re
import socket
from importlib.resources import files
from math import exp

import numpy as np
import pytest

import heedful
from heedful.models.language.training import measure_losses
from heedful.models.language.writer import Writer

HOME = files("heedful.models") / "checkpoints"
REVIEWS = (
    "I watched this movie last night with my wife and we both fell asleep. The plot makes no sense at all.",
    "One of the best films of the year. The acting is superb, and the ending made me cry.",
    "The story of a young man who comes back to the small town where he was born. It is slow, but it is worth it.",
    "I don't know why this got such good reviews. The jokes are not funny and the characters are boring.",
)


@pytest.fixture(scope="module")
def writer():
    model = heedful.load("writer")
    assert isinstance(model, Writer)
    return model


def perplexity(model, texts):
    ids = [np.array(model.vocabulary.encode(text)) for text in texts]
    sums, counts = measure_losses(model.network, ids, model.vocabulary.special[0])
    return exp(sums.sum() / counts.sum())


def test_card_names_the_file_by_its_hash_and_it_is_small(writer):
    content, card = (HOME / "writer.safetensors").read_bytes(), (HOME / "writer.md").read_text(encoding="utf-8")
    assert len(content) <= 14_000_000
    assert f"`{hashlib.sha256(content).hexdigest()}`" in card
    assert f"`{writer.fingerprint}`" in card
    assert f"{sum(weight.numel() for weight in writer.network.parameters()):,} weights" in card


def test_it_expects_reviews_and_not_their_words_in_another_order(writer):
    stated = float(re.search(r"perplexity per token \*\*([0-9.]+)", (HOME / "writer.md").read_text())[1])
    measured, rng = perplexity(writer, REVIEWS), np.random.default_rng(0)
    assert measured < 2 * stated < len(writer.vocabulary) / 50
    mixed = [" ".join(rng.permutation(text.split())) for text in REVIEWS]
    assert perplexity(writer, mixed) > 3 * measured


def test_it_loads_and_predicts_without_a_network(monkeypatch):
    def refuse(*_):
        raise OSError("there is no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    model = heedful.load("writer")
    logits = model(["I have never seen such a bad"])[0]
    assert model.classes[int(logits.argmax())] in (" movie", " film")
