"""The command line as a newcomer types it, good and bad."""

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


def test_compare_writes_every_kind_of_report(heedful_command, tmp_path):
    for ending in ("html", "json", "png", "svg", "pdf"):
        path = tmp_path / f"report.{ending}"
        code, _, err = heedful_command("compare", SENTENCE, "--n-samples=100", "--out", str(path))
        assert code == 0, err
        assert path.stat().st_size > 5_000
        assert f"Wrote {path}" in err


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


def test_the_version_can_be_asked(heedful_command):
    import heedful

    assert heedful_command("--version")[:2] == (0, f"{heedful.__version__}\n")


def test_a_byte_order_mark_is_no_part_of_the_first_word(heedful_command, tmp_path):
    (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbfgood film")
    _, out, _ = heedful_command("explain", "--file", str(tmp_path / "bom.txt"), "--method", "random", "--json")
    assert json.loads(out)["units"] == ["good", "film"]


def test_the_help_of_train_lists_every_setting_with_its_default(heedful_command):
    from dataclasses import fields

    from heedful.cli.app import train
    from heedful.datasets.imdb import Imdb
    from heedful.models.network import Config
    from heedful.models.training import Recipe

    told = " ".join((train.__doc__ or "").split())
    for field in (field for member in (Recipe, Config, Imdb) for field in fields(member)):
        assert f"--{field.name.replace('_', '-')} {field.default}" in told


def test_list_shows_one_method_with_its_settings(heedful_command):
    code, out, _ = heedful_command("list", "lime")
    assert code == 0
    assert "--n-samples 5000" in out


def test_list_names_every_method_in_one_line_each(heedful_command):
    import heedful

    code, out, _ = heedful_command("list")
    assert code == 0
    for name in (*heedful.methods(), *heedful.datasets()):
        assert sum(line.startswith(f"{name} ") for line in out.splitlines()) == 1


BAD = [
    (("explain", ""), "holds no word"),
    (("explain",), "No text was given"),
    (("compare", "good film", "--methods", ""), "No method was named"),
    (("explain", "zzzz qqqq"), "knows none of the text's words"),
    (("explain", "good"), "Lime needs at least 2 words; the document has 1."),
    (("explain", "😀 😀"), "knows none of the text's words"),
    (("explain", "שלום עולם"), "knows none of the text's words"),
    (("explain", "good film", "--method", "shap"), "There is no method 'shap'"),
    (("explain", "good film", "--target", "7"), "There is no class 7"),
    (("explain", "good film", "--target", "great"), "There is no class 'great'"),
    (("explain", "good film", "--unit", "letter"), "There is no unit 'letter'"),
    (("explain", "good film", "--n-samples", "many"), "n_samples must be a whole number"),
    (("explain", "good film", "--n-sample", "9"), "Did you mean 'n_samples'"),
    (("explain", "good", "film"), "one text too many"),
    (("explain", "good film", "--file", "x.txt"), "Give a text or --file, not both."),
    (("explain", "--file", "nowhere.txt"), "nowhere.txt cannot be read"),
    (("explain", "good film", "--model", "nowhere"), "There is no model 'nowhere'"),
    (("explain", "good film", "--out", "report.docx"), "A report ends in .html"),
    (("explain", "good film", "--out", "no/such/folder/report.html"), "cannot be written"),
    (("compare", "good film", "--methods", "lime,anchrs"), "There is no method 'anchrs'"),
    (("compare", ""), "holds no word"),
    (("train", "imbd"), "There is no data set 'imbd'. Did you mean 'imdb'"),
    (("train", "imdb", "foo"), "There is no data set 'imdb foo'"),
    (("train", "--d-e", "7"), "even d_e"),
    (("train", "--device", "nonsense"), "There is no device 'nonsense'"),
    (("train", "--n-epochs", "0"), "n_epochs must be above 0"),
    (("explain", "good film", "--method", "random", "--seed", "-1"), "A seed is a whole number from 0; -1 was given."),
    (("explain", "good film", "--n-samples", "100000000000"), "takes 10 to 10,000,000 samples"),
    (("explain", "good film", "--ridge", "inf"), "a finite ridge"),
    (("explain", "good film", "--kernel-width", "0.001"), "nearly all samples weigh nothing"),
    (("explain", "good film", "--text", "x"), "There is no setting 'text'"),
    (("explain", "good film", "--seed"), "--seed needs a value."),
    (("explain", "good film", "--out"), "requires an argument"),
    (("explian", "good film"), "No such command"),
    (("train", "imdb", "--epochs", "3"), "There is no setting 'epochs'. Did you mean 'n_epochs'"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_2(heedful_command, words, sentence):
    code, out, err = heedful_command(*words)
    assert code == 2
    assert sentence in err
    assert err.startswith("heedful: ")
    assert err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize("content", [b"good \0 film", b"\xff\xfe\x00g", b"\x89PNG\r\n"])
def test_a_binary_file_is_one_sentence(heedful_command, tmp_path, content):
    (tmp_path / "binary").write_bytes(content)
    for words in (("explain", "--file", str(tmp_path / "binary")), ("explain", "-")):
        code, _, err = heedful_command(*words, stdin=content)
        assert code == 2
        assert err.count("\n") == 1


def test_a_hundred_thousand_words_are_explained_and_the_cut_is_said(heedful_command, tmp_path):
    (tmp_path / "long.txt").write_text("a good film " * 33_334)
    code, out, _ = heedful_command("explain", "--file", str(tmp_path / "long.txt"), "--method", "attention-mean")
    assert code == 0
    assert "Only the first 255 words were read" in " ".join(out.split())


def test_broken_checkpoints_are_one_sentence(heedful_command, tmp_path):
    from importlib.resources import files

    whole = (files("heedful.models") / "checkpoints" / "paper.safetensors").read_bytes()
    for name, content in (("cut", whole[:5_000_000]), ("foreign", b"not a model at all"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        code, _, err = heedful_command("explain", "good film", "--model", str(tmp_path / name))
        assert code == 2
        assert err.count("\n") == 1


def test_a_report_is_not_written_when_the_text_is_bad(heedful_command, tmp_path):
    heedful_command("explain", "", "--out", str(tmp_path / "report.html"))
    assert not list(tmp_path.iterdir())
