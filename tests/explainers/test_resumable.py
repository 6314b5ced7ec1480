from dataclasses import replace

import numpy as np
import pytest

import heedful
from heedful.datasets.texts import texts_of
from heedful.errors import BadInput
from heedful.explainers import configure, resumable
from heedful.explainers.many_texts import ManyTexts
from heedful.explainers.resumable import explain_into
from heedful.models.budget import Budget

WORDS = ("good", "bad", "dull", "bright", "very", "not")
TEXTS = [f"the film was {one} but {two}" for one in WORDS for two in WORDS if one != two][:23]
TEXTS[3] = ""


class Killed(Exception):
    pass


def many(model, method, **settings):
    budget = Budget.of(None, None, lambda *_: None)
    return ManyTexts(model, configure(method, settings), texts_of(TEXTS), None, None, "logit", budget)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(autouse=True)
def _small_files(monkeypatch):
    monkeypatch.setattr(resumable, "SHARD", 5)


@pytest.mark.parametrize(("method", "settings"), [("shapley-sampled", {"n_samples": 40}), ("attention-mean", {})])
def test_a_killed_run_resumes_and_writes_the_same_bytes(tiny, tmp_path, method, settings):
    summary = explain_into(many(tiny, method, **settings), tmp_path / "whole")
    for place in (2, 5, 12, 20, 23):

        def kill(done, of, place=place):
            if done >= place:
                raise Killed

        with pytest.raises(Killed):
            explain_into(many(tiny, method, **settings), tmp_path / "parts", kill)
    assert explain_into(many(tiny, method, **settings), tmp_path / "parts") == summary
    assert files(tmp_path / "parts") == files(tmp_path / "whole")
    assert sorted(files(tmp_path / "whole"))[:2] == ["explanations-00000.parquet", "explanations-00001.parquet"]
    assert summary == {"The text contains no words; give at least one.": ["3"]}


def test_the_folder_has_what_explain_gives(tiny, tmp_path):
    explain_into(many(tiny, "lime", n_samples=60), tmp_path / "run")
    read, direct = heedful.open(tmp_path / "run"), heedful.explain(tiny, TEXTS, "lime", n_samples=60)
    assert (read.ids, read.predicted, read.refusals) == (direct.ids, direct.predicted, direct.refusals)
    assert all(np.array_equal(one.scores, two.scores) for one, two in zip(read, direct, strict=True))


def test_no_text_is_explained_twice(tiny, tmp_path, monkeypatch):
    def stop(done, of):
        if done == 8:
            raise Killed

    with pytest.raises(Killed):
        explain_into(many(tiny, "lime", n_samples=60), tmp_path, stop)
    explained = []
    run = resumable.ManyTexts.explain
    monkeypatch.setattr(
        resumable.ManyTexts,
        "explain",
        lambda self, places, first: explained.extend(places) or run(self, places, first),
    )
    explain_into(many(tiny, "lime", n_samples=60), tmp_path)
    assert explained == list(range(8, 23))


def test_a_folder_of_another_run_is_refused(tiny, tmp_path):
    explain_into(many(tiny, "attention-mean"), tmp_path)
    with pytest.raises(BadInput, match=r"another run, which differs in method \(.*\), settings \(.*\); choose"):
        explain_into(many(tiny, "lime"), tmp_path)


def test_an_error_of_all_texts_leaves_no_results(tiny, tmp_path):
    with pytest.raises(BadInput, match="linear in the model's outputs"):
        explain_into(replace(many(tiny, "lime-theorem", unit="type"), scale="probability"), tmp_path)
    assert list(files(tmp_path)) == ["settings.json"]


def test_a_first_text_that_cannot_be_read_is_refused_alone(tmp_path):
    model = heedful.wrap(lambda texts: [[len(text.strip()), 1.0] for text in texts], returns="scores")
    budget = Budget.of(None, None, lambda *_: None)
    given = texts_of(["a film", 3.5, "dull"])
    summary = explain_into(ManyTexts(model, configure("random", {}), given, None, None, "logit", budget), tmp_path)
    assert [*summary.values()] == [["1"]]
