"""The examples run and say what their texts promise."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.slow
def test_the_multiple_instance_example(capsys):
    runpy.run_path(str(EXAMPLES / "attention_mil.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert float(lines[0].split()[-1].rstrip("%")) > 85
    assert "shapley-exact: the strongest item is of the hidden kind" in lines[2]
    assert int(lines[2].split(" in ")[1].split("%")[0]) >= 80
    assert "error at most" in lines[4]


@pytest.mark.slow
def test_the_features_of_a_language_model_classify_words_that_the_regression_has_not_seen(capsys):
    runpy.run_path(str(EXAMPLES / "last_layer_features.py"), run_name="__main__")
    fitted, unseen, *texts = capsys.readouterr().out.splitlines()
    assert float(fitted.split()[-2].rstrip("%")) >= 95
    assert float(unseen.split()[-2].rstrip("%")) >= 90
    assert len(texts) == 3


@pytest.mark.slow
def test_the_attention_to_time_series_is_on_the_pattern(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["time_series.py", str(tmp_path / "series.png")])
    runpy.run_path(str(EXAMPLES / "time_series.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert float(lines[0].split()[-1].rstrip("%")) > 90
    rows = [[float(number) for number in line.split()[2:]] for line in lines[2:7]]
    assert all(min(row[0], row[4]) > 2 * max(row[1:4]) for row in rows)
    near = [float(number) for number in lines[8].split()[1:]]
    assert min(near[3:5]) > 4 * max(*near[:3], *near[5:])
    assert (tmp_path / "series.png").read_bytes()[:4] == b"\x89PNG"
