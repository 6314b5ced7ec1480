"""`heedful explain` as a user types it."""

import json

import pytest

import heedful

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


@pytest.fixture
def table(tmp_path):
    lines = ["id,comment,toxic", 'x,"a fine, long film",1', "y,superb,0", "z,a dull story,0"]
    (tmp_path / "comments.csv").write_text("\n".join(lines))
    return tmp_path / "comments.csv"


READ = "Read 3 texts from comments.csv: text column 'comment', label column 'toxic', id column 'id', found by name.\n"


def test_every_row_of_a_table_is_explained_and_a_bad_one_is_named(heedful_command, table):
    code, out, err = heedful_command("explain", table, "--n-samples", "100")
    assert (code, err) == (0, READ)
    assert "Explanations of 3 texts, 1 refused" in out
    assert "Refused, 1 text: lime needs at least 2 words" in out
    _, out, _ = heedful_command("explain", "--file", table, "--n-samples", "100", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["id"] for row in rows] == ["x", "y", "z"]
    assert rows[0]["explanation"]["document"]["text"] == "a fine, long film"
    assert "2 words" in rows[1]["reason"]
    _, alone, _ = heedful_command("explain", table, "--row", "z", "--n-samples", "100", "--json")
    assert json.loads(alone) == rows[2]["explanation"]


def test_a_table_is_explained_into_a_folder_that_resumes(heedful_command, table, tmp_path):
    run = ("explain", table, "--n-samples", "100", "--out", tmp_path / "results")
    code, out, err = heedful_command(*run)
    assert code == 0
    assert out.splitlines() == [
        "2 of 3 texts were explained by lime.",
        "1 not explained (y): lime needs at least 2 words; the document has 1.",
    ]
    assert "heedful.open reads it" in err
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "explanations-00000.parquet",
        "settings.json",
    ]
    assert heedful_command(*run)[:2] == (0, out)
    assert "differs in settings" in heedful_command(*run, "--seed", "1")[2]
    assert heedful.open(tmp_path / "results").labels == (1, 0, 0)


def test_a_table_becomes_a_page_and_no_picture_of_one_text(heedful_command, table, tmp_path):
    code, _, err = heedful_command("explain", table, "--method", "attention-mean", "--out", tmp_path / "page.html")
    assert (code, err) == (0, f"{READ}Wrote {tmp_path / 'page.html'}\n")
    assert "superb" in (tmp_path / "page.html").read_text()
    code, _, err = heedful_command("explain", table, "--out", tmp_path / "page.png")
    assert (code, err.count("\n")) == (2, 1)
    assert "as a page (.html) or a folder" in err


def test_the_columns_of_a_table_may_be_named(heedful_command, table):
    code, _, err = heedful_command("explain", table, "--text-column", "coment")
    assert code == 2
    assert "no column 'coment'; did you mean 'comment'" in err
    more = ("--label-column", "none", "--id-column", "comment", "--method", "attention-mean")
    code, _, err = heedful_command("explain", table, "--text-column", "comment", *more)
    assert (code, err) == (0, "Read 3 texts from comments.csv: text column 'comment', id column 'comment'.\n")


def test_a_missing_table_is_not_a_text(heedful_command):
    code, out, err = heedful_command("explain", "reviews.csv")
    assert (code, out, err) == (2, "", "heedful: reviews.csv cannot be read: there is no such file.\n")
