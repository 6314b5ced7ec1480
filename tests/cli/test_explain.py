"""`heedful explain` as a user types it."""

import json

import pytest

SENTENCE = "attention based explanations are popular but questionable"


def test_explain_prints_a_picture(heedful_command):
    code, out, _ = heedful_command("explain", SENTENCE, "--method", "lime", "--n-samples", "200", "--target", "1")
    assert code == 0
    assert "questionable" in out
    assert "signed" in out


def test_explain_prints_json(heedful_command):
    code, out, _ = heedful_command("explain", SENTENCE, "--method", "leave-one-out", "--unit", "type", "--json")
    kept = json.loads(out)
    assert code == 0
    assert kept["units"] == SENTENCE.split()
    assert kept["settings"]["absence"] == "replace"


def test_text_comes_from_a_file_or_standard_input(heedful_command, tmp_path):
    (tmp_path / "review.txt").write_text(SENTENCE)
    from_file = heedful_command("explain", "--file", str(tmp_path / "review.txt"), "--method", "random", "--json")
    from_stdin = heedful_command("explain", "-", "--method", "random", "--json", stdin=SENTENCE.encode())
    assert from_file[:2] == from_stdin[:2]


def test_options_may_stand_before_the_text(heedful_command):
    after = heedful_command("explain", SENTENCE, "--method", "random", "--seed", "3", "--json")
    before = heedful_command("explain", "--seed", "3", "--method", "random", "--json", SENTENCE)
    assert after == before


@pytest.mark.parametrize("text", ["--great film", "-terrible film", "- good film", "good -- film"])
def test_a_text_may_begin_with_dashes(heedful_command, text):
    code, out, _ = heedful_command("explain", "--method", "attention-mean", "--json", "--", text)
    assert code == 0
    assert json.loads(out)["document"]["text"] == text


def test_bytes_that_are_no_text_do_not_break_a_report(heedful_command, tmp_path):
    for ending in ("html", "json", "svg"):
        path = tmp_path / f"report.{ending}"
        code, _, err = heedful_command("explain", "good \udcff film", "--method", "attention-mean", "--out", str(path))
        assert code == 0, err
        assert path.stat().st_size > 0


def test_a_byte_order_mark_is_no_part_of_the_first_word(heedful_command, tmp_path):
    (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbfgood film")
    _, out, _ = heedful_command("explain", "--file", str(tmp_path / "bom.txt"), "--method", "random", "--json")
    assert json.loads(out)["units"] == ["good", "film"]


def test_a_hundred_thousand_words_are_explained_with_a_note(heedful_command, tmp_path):
    (tmp_path / "long.txt").write_text("a good film " * 33_334)
    code, out, _ = heedful_command("explain", "--file", str(tmp_path / "long.txt"), "--method", "attention-mean")
    assert code == 0
    assert "Only the first 255 words were read" in " ".join(out.split())


def test_a_report_is_not_written_when_the_text_is_bad(heedful_command, tmp_path):
    heedful_command("explain", "", "--out", str(tmp_path / "report.html"))
    assert not list(tmp_path.iterdir())
