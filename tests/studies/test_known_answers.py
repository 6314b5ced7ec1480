import json
from functools import partial
from math import sqrt

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from heedful.errors import BadInput
from heedful.features.fitting import load_dictionary
from studies.features import known_answers
from studies.features.known_answers import Size, main, mean_line, train_and_measure

SIZE = ["--small", "--width", "8", "--k", "2", "--rows", "1000", "--judged", "200"]


def run(out, *words):
    main([*SIZE, "--batch-size", "4096", "--out", str(out), *words])
    return json.loads((out / "results.json").read_text())


@pytest.mark.slow
def test_finished_trainings_are_kept_and_only_missing_ones_are_made(tmp_path, capsys, monkeypatch):
    first = run(tmp_path, "--kind", "relu", "--seeds", "0", "--save", "--passes", "0")
    assert (tmp_path / "relu-0" / "dictionary.safetensors").is_file()
    assert first["runs"][0]["training"]["batch_size"] == 4_096
    train, seeds = known_answers.train_on, []

    def noted(*words, **named):
        seeds.append(words[3].seed)
        return train(*words, **named)

    monkeypatch.setattr(known_answers, "train_on", noted)
    monkeypatch.setattr(known_answers, "measure_ceiling", partial(known_answers.measure_ceiling, n_steps=1))
    both = run(tmp_path, "--kind", "relu", "--seeds", "0", "1", "--passes", "0", "--ceiling")
    assert seeds == [1]
    assert both["runs"][0] == first["runs"][0]
    assert both["runs"][0]["recovery"] != both["runs"][1]["recovery"]
    assert 0 < both["ceilings"][0]["f1"]["value"] <= 1
    text = capsys.readouterr().out
    assert "relu, mean of 2 seeds: f1" in text
    assert "linear probes of the 8 most frequent features: f1" in text


def test_the_mean_over_seeds_has_students_interval():
    runs = [{"kind": "topk", "recovery": {**dict.fromkeys(known_answers.BOUNDS, 0.5), "f1": f1}} for f1 in (0.6, 0.8)]
    half = 12.7062 * 0.1 * sqrt(2) / sqrt(2)
    assert f"f1 0.7 [{max(0, 0.7 - half):.4g}, {min(1, 0.7 + half):.4g}], mcc 0.5," in mean_line(runs)


def test_an_unknown_setting_is_an_error(tmp_path):
    with pytest.raises(BadInput, match="no setting 'passion'"):
        run(tmp_path, "--passion", "1")


@pytest.mark.slow
def test_a_short_training_recovers_known_features_by_an_outside_computation(tmp_path):
    size = Size(True, 128, 5.6, 131_072, 4_000)
    result = train_and_measure(size, "batchtopk", 0, "cpu", {"batch_size": 256, "learning_rate": 2e-3}, tmp_path)
    data, dictionary = size.data(0, "cpu"), load_dictionary(tmp_path / "batchtopk-0")
    parts = [data.sample(200, 0, number) for number in range(20)]
    true = np.concatenate([active.numpy() for active, _ in parts]) > 0
    active = np.concatenate([dictionary.encode(rows.numpy()) for _, rows in parts]) > 0
    cosines = np.abs(dictionary.directions @ data.directions.double().numpy().T)
    # Dice's coefficient of every pair; F1 is that of each feature and the known one of the most similar direction.
    sizes = active.sum(axis=0)[:, None] + true.sum(axis=0)
    dice = 2 * (active.T.astype(float) @ true) / np.maximum(sizes, 1)
    recovery = result["recovery"]
    assert recovery["f1"]["value"] == pytest.approx(dice[np.arange(128), cosines.argmax(axis=1)].mean(), abs=1e-9)
    assert recovery["mcc"] == pytest.approx(matched(cosines) / 128, abs=1e-5)
    assert recovery["l0"]["value"] == pytest.approx(active.sum() / 4_000)
    # Untrained directions have an F1 of 0.03 and an MCC of 0.39.
    assert recovery["f1"]["value"] > 0.4
    assert recovery["mcc"] > 0.5


def matched(cosines):
    """The largest sum of a one-to-one matching, by a linear programme, whose vertices are whole numbers."""
    n, m = cosines.shape
    once = [sparse.kron(sparse.eye(n), np.ones((1, m))), sparse.kron(np.ones((1, n)), sparse.eye(m))]
    limits = [LinearConstraint(rows, -np.inf, 1) for rows in once]
    return -milp(-cosines.ravel(), constraints=limits, bounds=Bounds(0, 1)).fun


@pytest.mark.slow
def test_topk_gets_a_whole_number_of_active_features():
    result = train_and_measure(Size(True, 8, 5.6, 1_000, 200), "topk", 0, "cpu", {"batch_size": 65_536}, None)
    assert result["training"]["k"] == 6
