"""Remove and retrain from texts to figure: rankings, whole studies that are stopped, the command."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.errors import BadInput, UnknownName
from heedful.explainers.explain import explain
from heedful.models.network import Network
from heedful.models.single_layer import SingleLayer
from heedful.models.training import initial_weights
from studies.roar.__main__ import main
from studies.roar.plan import RoarPlan
from studies.roar.rankings import NOWHERE, mapping, rank_texts
from studies.roar.study import SPLITS, Settings, Study, Voice
from tests.studies.planted import CONFIG, EXAMPLES, RECIPE, VOCABULARY, Killed, Planted


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """A model nobody trained, in a file: the experiment loads what it explains by name."""
    model = SingleLayer(Network(CONFIG, initial_weights(CONFIG, len(VOCABULARY), 5)), VOCABULARY, Planted.classes)
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    model.save(path, {})
    return path


@pytest.mark.slow
def test_words_are_ranked_by_the_size_of_their_scores(model_file):
    texts = [example.text for example in EXAMPLES["test"][:20]] + ["great film"]
    seen = []
    with mapping(1) as over:
        ranks = rank_texts(str(model_file), "lime-exact", texts, over, seen.append)
    assert seen == [21]
    model = SingleLayer.load(model_file)
    for text, row in zip(texts, ranks, strict=True):
        scores = np.abs(explain(model, text, "lime-exact", target="positive", against="negative").scores)
        assert sorted(row[: len(scores)].tolist()) == list(range(len(scores)))
        assert (np.diff(scores[np.argsort(row[: len(scores)])]) <= 1e-12).all()
        assert (row[len(scores) :] == NOWHERE).all()


def test_the_ranking_does_not_depend_on_the_target_class(model_file):
    model = SingleLayer.load(model_file)
    for method in RoarPlan().methods:
        one, other = (explain(model, "great film it was", method, target=a, against=1 - a) for a in (0, 1))
        assert np.abs(one.scores) == pytest.approx(np.abs(other.scores), rel=1e-9)


@pytest.mark.slow
def test_processes_rank_as_this_one_does(model_file):
    texts = [example.text for example in EXAMPLES["test"][:40]]
    rows = []
    for n_workers in (1, 2):
        with mapping(n_workers) as over:
            rows.append(rank_texts(str(model_file), "gradient-x-input", texts, over))
    assert (rows[0] == rows[1]).all()


@pytest.fixture(scope="module")
def settings(model_file):
    plan = RoarPlan(("attention-mean",), percents=(50,))
    return Settings(plan, replace(RECIPE, n_epochs=1), str(model_file))


FEW = {split: part[:60] for split, part in EXAMPLES.items()}
FILES = ("results.jsonl", "roar.json", "roar.svg")


@pytest.fixture(scope="module")
def study(settings, tmp_path_factory):
    pytest.importorskip("matplotlib", reason="the figure is drawn with matplotlib")
    out = tmp_path_factory.mktemp("study")
    return out, Study(FEW, settings, out).run()


@pytest.mark.slow
def test_a_study_writes_what_it_found(study):
    out, result = study
    written = json.loads((out / "roar.json").read_text())
    assert [(curve["mode"], curve["method"]) for curve in written["curves"]] == [(c.mode, c.method) for c in result]
    assert written["n_texts"] == dict.fromkeys(SPLITS, 60)
    assert len(written["results"]) == len((out / "results.jsonl").read_text().splitlines()) == 5
    assert (out / "roar.png").stat().st_size > 1000


@pytest.mark.parametrize("moment", ["random, ranking the words of the test", "attention-mean, ranking", "2 of 5"])
def test_a_study_killed_at_any_moment_ends_with_the_same_files(study, settings, tmp_path, moment):
    def kill(name, done, goal):
        if name.startswith(moment):
            raise Killed

    with pytest.raises(Killed):
        Study(FEW, settings, tmp_path, voice=Voice(kill)).run()
    assert Study(FEW, settings, tmp_path).run() == study[1]
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (study[0] / name).read_bytes()


def test_a_study_of_other_texts_training_or_grouping_is_refused(study, settings):
    fewer = {split: part[:-1] for split, part in FEW.items()}
    slower = replace(settings, recipe=replace(settings.recipe, learning_rate=1e-3))
    for examples, changed in ((fewer, settings), (FEW, slower), (FEW, replace(settings, at_once=2))):
        with pytest.raises(BadInput, match="results of other settings or data"):
            Study(examples, changed, study[0]).run()


def test_rankings_of_another_model_are_refused_and_damaged_ones_named(study, settings, tmp_path):
    other = SingleLayer(Network(CONFIG, initial_weights(CONFIG, len(VOCABULARY), 6)), VOCABULARY, Planted.classes)
    other.save(tmp_path / "other.safetensors", {})
    changed = replace(settings, model=str(tmp_path / "other.safetensors"))
    with pytest.raises(BadInput, match="ranks the words of another model, method or data"):
        Study(FEW, changed, tmp_path / "out", study[0] / "rankings").run()
    (tmp_path / "random-train.safetensors").write_bytes(b"cut")
    with pytest.raises(BadInput, match="random-train.safetensors is damaged; delete it"):
        Study(FEW, settings, tmp_path / "out", tmp_path).run()


def test_a_method_that_does_not_exist_is_refused_before_anything_is_done(settings, tmp_path):
    with pytest.raises(UnknownName, match="There is no method 'lime-exakt'"):
        Study(FEW, replace(settings, plan=RoarPlan(("lime-exakt",))), tmp_path / "out").run()
    assert not (tmp_path / "out").exists()


def test_nothing_global_is_left_changed(settings, tmp_path):
    before, n_threads = torch.get_rng_state(), torch.get_num_threads()
    Study(FEW, replace(settings, plan=RoarPlan(("random",), ("keep",), (50,))), tmp_path).run()
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == n_threads


@pytest.mark.slow
def test_the_command_runs_and_says_what_is_wrong_in_a_sentence(model_file, tmp_path, monkeypatch, capsys):
    pa = pytest.importorskip("pyarrow", reason="IMDB is read from parquet")
    from pyarrow import parquet

    (tmp_path / "imdb").mkdir()
    for half, n in (("train", 5_060), ("test", 80)):
        rows = (EXAMPLES["train"] * 20)[:n]
        columns = {"text": [row.text for row in rows], "label": [row.label for row in rows]}
        parquet.write_table(pa.table(columns), tmp_path / "imdb" / f"{half}.parquet")
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    command = ["--quick", "--out", str(tmp_path / "out"), "--model", str(model_file)]
    command += ["--methods", "leave-one-out", "--modes", "keep"]
    main(command)
    shown = capsys.readouterr()
    assert "keep and retrain" in shown.out
    assert "leave-one-out" in shown.out
    assert "0 of 5 models trained" in shown.err
    texts = json.loads((tmp_path / "out" / "roar.json").read_text())["n_texts"]
    assert texts == {"train": 60, "validation": 200, "test": 80}
    with pytest.raises(SystemExit, match="2"):
        main([*command, "--batch-size", "4"])
    assert "holds results of other settings or data" in capsys.readouterr().err
