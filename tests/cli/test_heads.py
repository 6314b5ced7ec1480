"""`heedful heads` as a user types it."""

import json

import pytest

import heedful

TEXT = "a fine film , but too long"


def test_the_json_is_what_python_gives(heedful_command, paper):
    code, out, _ = heedful_command("heads", TEXT, "--json")
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(heedful.heads(paper, [TEXT]).as_dict()))


def test_a_corpus_is_one_text_per_line(heedful_command, paper, tmp_path):
    texts = [TEXT, "a dull story .", "good"]
    (tmp_path / "texts.txt").write_text("\n\n".join(texts))
    _, out, _ = heedful_command("heads", TEXT, "--corpus", tmp_path / "texts.txt", "--json")
    assert json.loads(out) == json.loads(json.dumps(heedful.heads(paper, texts).as_dict()))


@pytest.mark.parametrize("name", ["heads.html", "head.svg"])
def test_the_maps_are_written(heedful_command, tmp_path, name):
    code, out, err = heedful_command("heads", TEXT, "--out", tmp_path / name)
    assert code == 0
    assert "layer" in out
    assert f"Wrote {tmp_path / name}" in err
    assert "film" in (tmp_path / name).read_text(encoding="utf-8")


def test_a_setting_of_a_method_is_refused(heedful_command):
    code, out, err = heedful_command("heads", TEXT, "--", "--n-samples=3")
    assert (code, out) == (2, "")
    options = "corpus, device, file, head, json, layer, model, numbers, out, row, second"
    assert f"There is no option 'n_samples'. Known: {options}." in err
