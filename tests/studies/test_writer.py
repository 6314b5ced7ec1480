"""The trainer of the bundled model "writer" on synthetic reviews."""

import json
from dataclasses import replace
from math import exp

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the trainer reads parquet")
pytest.importorskip("pyarrow.parquet")

from heedful.models.language.file import load_gpt2  # noqa: E402
from heedful.models.language.training import Gpt2Recipe, measure_losses  # noqa: E402
from studies.writer import __main__ as study  # noqa: E402
from studies.writer import corpus  # noqa: E402
from studies.writer.card import bundle, sample  # noqa: E402
from studies.writer.corpus import pack, read_reviews, unpack  # noqa: E402
from studies.writer.prepare import prepare  # noqa: E402

QUICK = replace(study.SIZES, n_tokens=270, T_max=16, d_e=8, depth=1, n_heads=2, d_hidden=16)


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    (folder / "imdb").mkdir()
    for part, n in (("train", 40), ("unsup", 60), ("test", 30)):
        texts = [" ".join(rng.choice(["good", "bad", "film", "story", "<br />"], 20)) for _ in range(n)]
        # A test review stands in every half, with another label or none.
        pa.parquet.write_table(pa.table({"text": ["the same", *texts]}), folder / "imdb" / f"{part}.parquet")
    return read_reviews(folder, 10, 0)


def test_no_test_review_is_trained_on_and_none_is_set_apart(reviews):
    assert reviews.n_tested == 2
    assert "the same" in reviews.test
    for one, other in (("train", "test"), ("held_out", "test"), ("train", "held_out")):
        assert not {*getattr(reviews, one)} & {*getattr(reviews, other)}
    assert (len(reviews.train), len(reviews.held_out), len(reviews.test)) == (90, 10, 31)
    assert not any("<br" in text for text in reviews.train)


def test_packed_texts_come_back_from_several_files(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "PART", 100)
    texts = [np.random.default_rng(n).integers(0, 7_680, n) for n in (0, 1, 50, 300)]
    assert len(pack(texts, tmp_path / "train")) > 2
    for text, again in zip(texts, unpack(tmp_path / "train"), strict=True):
        assert np.array_equal(text, again)


def test_it_trains_to_a_model_whose_card_states_the_perplexity_of_the_file(reviews, tmp_path):
    prepare(reviews, QUICK.n_tokens, tmp_path)
    study.train(tmp_path, None, tmp_path, QUICK, Gpt2Recipe(n_epochs=1), [0.1, 0.0], 0)
    card = bundle(tmp_path, reviews.test, tmp_path)
    model = load_gpt2(tmp_path / "writer.safetensors")
    ids = [np.array(model.vocabulary.encode(text)) for text in reviews.test]
    sums, counts = measure_losses(model.network, ids, model.vocabulary.special[0])
    assert f"perplexity per token **{exp(sums.sum() / counts.sum()):.2f} [" in card
    assert f"`{model.fingerprint}`" in card
    figures = json.loads((tmp_path / "figures.json").read_text())
    losses = {name: one["held_out_loss"] for name, one in figures["candidates"].items()}
    assert figures["chosen"] == min(losses, key=losses.get)
    assert sample(model, "good", 5, 0) == sample(model, "good", 5, 0)
