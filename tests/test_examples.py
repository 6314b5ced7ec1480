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
