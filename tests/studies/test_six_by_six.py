"""The trainer of Appendix E's model on synthetic data."""

import json

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="the trainer reads parquet")


import heedful  # noqa: E402
from studies.six_by_six import QUICK, Settings, train  # noqa: E402


def test_it_trains_to_a_model_that_loads_and_explains(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "imdb").mkdir()
    for half in ("train", "test"):
        labels = rng.integers(0, 2, 64).tolist()
        texts = [" ".join([("bad", "good")[label], *rng.choice(["the", "film", "was"], 6)]) for label in labels]
        pa.parquet.write_table(pa.table({"text": texts, "label": labels}), tmp_path / "imdb" / f"{half}.parquet")
    figures = train(tmp_path, tmp_path / "out", QUICK)
    model = heedful.load(str(tmp_path / "out"))
    assert json.loads((tmp_path / "out" / "card.json").read_text())["figures"] == figures
    hits = [int(row.argmax()) == label for row, label in zip(model(texts), labels, strict=True)]
    assert np.mean(hits) == pytest.approx(figures["test_accuracy"])
    explanation = heedful.explain(model, "the film was good", "shapley-sampled")
    assert explanation.scores.sum() == pytest.approx(explanation.output - explanation.facts["intercept"], abs=1e-5)


def test_the_full_model_is_six_by_six():
    assert (Settings().model.depth, Settings().model.n_heads) == (6, 6)
