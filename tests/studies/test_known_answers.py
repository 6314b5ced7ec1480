import json
from functools import partial
from math import sqrt

import pytest

from heedful.errors import BadInput
from studies.features import known_answers
from studies.features.known_answers import main, mean_line

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
