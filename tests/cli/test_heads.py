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
    options = "corpus, device, file, head, json, layer, model, numbers, out, parse, row, second, unit"
    assert f"There is no option 'n_samples'. Known: {options}." in err


def test_relations_and_words_are_asked_for_by_options(heedful_command, paper, tmp_path):
    code, out, _ = heedful_command(
        "heads", TEXT, "--json", "--parse", "rules", "--unit", "word", "--out", tmp_path / "w.png"
    )
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(heedful.heads(paper, [TEXT], parse="rules").as_dict()))
    assert "det→head" in json.loads(out)["patterns"]
    for option, message in (("--unit=wrd", "did you mean 'word'"), ("--parse=none", "needs spaCy")):
        code, _, err = heedful_command("heads", TEXT, option)
        assert code == 2
        assert message in err


def test_numbers_are_printed_or_drawn(heedful_command, tmp_path, paper):
    code, out, _ = heedful_command("heads", TEXT, "--numbers", "--head", "2")
    assert code == 0
    document = paper.encode(TEXT)
    first = paper.maps(document)[0, 2, 0, : len(document.ids)]
    assert " ".join(f"{weight:.2f}" for weight in first) in " ".join(out.split())
    assert "the rest is on padding" in out
    assert heedful_command("heads", TEXT, "--numbers", "--out", tmp_path / "m.png")[0] == 0
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    for words, sentence in (
        (["--out", tmp_path / "m.html"], "must end in .png, .svg or .pdf"),
        (["--json"], "leave --json out"),
        (["--head", "9"], "There is no head 9"),
    ):
        code, _, err = heedful_command("heads", TEXT, "--numbers", *words)
        assert (code, sentence in err) == (2, True)
