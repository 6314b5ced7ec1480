"""The trainer of the bundled model "reviews" on synthetic data."""

import json
import shutil

import numpy as np
import pytest
import torch

pa = pytest.importorskip("pyarrow", reason="the trainer reads parquet")
pytest.importorskip("tokenizers", reason="the trainer learns a vocabulary with it")

import heedful  # noqa: E402
from heedful.models.encoder.file import load_encoder  # noqa: E402
from studies.reviews.__main__ import QUICK, train  # noqa: E402
from studies.reviews.card import bundle  # noqa: E402
from studies.reviews.corpus import Texts, read_corpus  # noqa: E402
from studies.reviews.sanity import SENTENCES  # noqa: E402

OTHERS = ["the", "film", "was", "does", "n't", "story"]


def write(folder, name, **columns):
    path = folder / f"{name}.parquet"
    path.parent.mkdir(exist_ok=True)
    pa.parquet.write_table(pa.table(columns), path)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)

    def review(label, n):
        return " ".join([("bad", "good")[label], *rng.choice(OTHERS, n), str(rng.integers(10**9))])

    for part, n in (("imdb/train", 90), ("imdb/test", 40)):
        labels = rng.integers(0, 2, n).tolist()
        write(folder, part, text=[review(label, 5 + 30 * (k % 2)) for k, label in enumerate(labels)], label=labels)
    write(folder, "imdb/unsup", text=[review(k % 2, 9) for k in range(60)])
    labels = [k % 2 for k in range(60)]
    trees = [["the", "film", "was", ("bad", "good")[k % 2], "indeed", str(k)] for k in range(60)]
    spans = {"span_start": [[0, 0, 0]] * 60, "span_end": [[2, 5, 6]] * 60}
    rated = [[2, 1 + 2 * label, 1 + 2 * label] for label in labels]
    write(folder, "sst/sst_trees_train", tokens=trees, label2=labels, span_label5=rated, **spans)
    write(folder, "sst/glue_sst2_train", text=[" ".join(tree) for tree in trees], label=labels)
    write(folder, "sst/glue_sst2_validation", text=["so good it does n't matter", "so bad"], label=[1, 0])
    return folder


def test_it_trains_to_a_model_that_loads_and_explains(data, tmp_path):
    figures = train(data, tmp_path, QUICK)
    assert json.loads((tmp_path / "figures.json").read_text())["test"]["right"] == figures["test"]["right"]
    model = heedful.load(str(tmp_path))
    table = pa.parquet.read_table(data / "imdb/test.parquet").to_pydict()
    logits = model(table["text"])
    right = int(((logits[:, 1] > logits[:, 0]) == np.array(table["label"], dtype=bool)).sum())
    assert right == figures["test"]["right"]
    card = bundle(tmp_path, tmp_path / "home")
    assert f"{right / 40:.2%} [" in card
    assert f"`{load_encoder(tmp_path / 'home' / 'reviews.safetensors').fingerprint}`" in card
    explanation = heedful.explain(model, "the film was good", "shapley-sampled")
    assert explanation.scores.sum() == pytest.approx(explanation.output - explanation.facts["intercept"], abs=1e-5)


def test_rows_are_what_the_model_reads(data, tmp_path):
    vocabulary, corpus = read_corpus(data, tmp_path, 300, 30, 0)
    texts = pa.parquet.read_table(data / "imdb/test.parquet")["text"].to_pylist()
    rows = corpus["test"].rows(torch.arange(len(texts)), 32).numpy()
    assert any(len(vocabulary.split(text)) > 31 for text in texts)
    for text, row in zip(texts, rows, strict=True):
        ids = vocabulary.read(text, 32).ids
        assert row[: len(ids)].tolist() == ids.tolist()
        assert not row[len(ids) :].any()


def test_the_stream_has_a_start_before_every_text():
    texts = Texts(torch.tensor([10, 11, 12, 13]), torch.tensor([1, 0, 3]), torch.tensor([1, 1, 0]))
    assert texts.stream().tolist() == [2, 10, 2, 2, 11, 12, 13]


def test_a_text_of_the_test_reviews_is_in_no_other_split(data, tmp_path):
    before = read_corpus(data, tmp_path / "before", 300, 30, 0)[1]
    other = tmp_path / "data"
    shutil.copytree(data, other)
    tested = pa.parquet.read_table(data / "imdb/test.parquet")["text"].to_pylist()
    for part in ("train", "unsup"):
        columns = pa.parquet.read_table(data / f"imdb/{part}.parquet").to_pydict()
        write(
            other,
            f"imdb/{part}",
            **{name: values + (tested if name == "text" else [1] * 40) for name, values in columns.items()},
        )
    after = read_corpus(other, tmp_path / "after", 300, 30, 0)[1]
    for part in ("train", "unsup", "held_reviews"):
        assert len(after[part]) == len(before[part])
    assert len(after["test"]) == 40


def test_held_out_sentences_and_their_longer_phrases_are_not_trained_on(data, tmp_path):
    _, corpus = read_corpus(data, tmp_path, 300, 30, 0)
    n_held = len(corpus["held_sentences"])
    assert n_held == 10
    assert len(corpus["phrases"]) == 60 - n_held + 1, "fifty sentences, and the neutral phrase that all share"


def test_there_are_forty_sanity_sentences_half_of_them_positive():
    assert len({text for text, _ in SENTENCES}) == 40
    assert sum(label for _, label in SENTENCES) == 20
