"""Texts, files, names and settings of a command line."""

import io
import sys

import pytest

import heedful
from heedful.cli.input import (
    Columns,
    input_and_settings,
    load_model,
    model_of,
    named_models,
    one_text,
    read_text_file,
    read_texts,
    split_names,
    split_words,
)
from heedful.datasets.labels import class_numbers
from heedful.document import Pair
from heedful.errors import BadInput
from heedful.features.card import Card
from tests.families import build


def test_the_text_and_the_settings_are_separated():
    assert input_and_settings(["--seed", "3", "a film"], None, None) == ("a film", {"seed": "3"})
    assert input_and_settings(["a film"], None, "ein Film") == (Pair("a film", "ein Film"), {})


def test_a_dash_reads_standard_input_without_its_byte_order_mark(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeffa film"))
    assert input_and_settings(["-"], None, None)[0] == "a film"


def test_exactly_one_text_is_needed(tmp_path):
    (tmp_path / "text").write_text("a film")
    for words, file in (([], None), (["a", "film"], None), (["a film"], tmp_path / "text")):
        with pytest.raises(BadInput):
            input_and_settings(words, file, None)
    assert input_and_settings([], tmp_path / "text", None)[0] == "a film"


def test_a_file_must_be_utf_8(tmp_path):
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))
    with pytest.raises(BadInput, match="not a UTF-8 text file"):
        read_text_file(tmp_path / "latin")
    with pytest.raises(BadInput, match="cannot be read"):
        read_text_file(tmp_path / "nowhere")


def test_names_are_separated_by_commas():
    assert split_names(" lime, anchors ,,") == ["lime", "anchors"]
    assert split_names("") == []
    assert split_names(None) is None


def test_words_come_from_the_option_or_from_a_file(tmp_path):
    (tmp_path / "words").write_text("good\nbad, dull\tfine\n")
    assert split_words("good,bad dull") == ["good", "bad", "dull"]
    assert split_words(f"@{tmp_path / 'words'}") == ["good", "bad", "dull", "fine"]


def test_a_text_file_is_one_text_per_line(tmp_path):
    (tmp_path / "texts.txt").write_text("a film\n\n  \na story\n")
    texts = read_texts(tmp_path / "texts.txt")
    assert texts.texts == ("a film", "a story")
    assert texts.about == "Read 2 texts from texts.txt, one per line."


def test_a_json_line_is_a_text_a_pair_or_an_example(tmp_path):
    lines = [
        '{"text": "a film"}',
        '{"text": ["a film", "ein Film"], "label": "positive"}',
        '{"text": "a fine film", "label": 0, "rationale": [[2, 6]]}',
    ]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    texts = read_texts(tmp_path / "texts.jsonl")
    assert texts.texts == ("a film", Pair("a film", "ein Film"), "a fine film")
    assert class_numbers(texts.labels, ("negative", "positive")) == (None, 1, 0)
    assert texts.rationales == (None, None, ((2, 6),))


def test_a_terminal_shows_what_a_model_is_unless_it_is_bundled(monkeypatch, capsys, tmp_path, tiny):
    tiny.save(tmp_path / "tiny.safetensors", {})
    model = load_model(str(tmp_path / "tiny.safetensors"), "cpu")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    load_model(str(tmp_path / "tiny.safetensors"), "cpu")
    assert capsys.readouterr().err == f"Model: {model.description}\n"
    load_model("paper", "cpu")
    assert capsys.readouterr().err == ""


def test_a_dictionary_of_a_model_that_is_not_bundled_needs_its_name():
    assert model_of(Card("topk", model_name="writer")) == "writer"
    with pytest.raises(BadInput, match="name it with --model"):
        model_of(Card("topk", model_name="mine"))


def test_several_models_are_named_by_the_ends_of_their_paths_if_these_differ():
    assert named_models(None) == {"paper": "paper"}
    assert named_models(["runs/a"]) == {"runs/a": "runs/a"}
    assert named_models(["runs/a", "paper", "paper"]) == {"a": "runs/a", "paper": "paper"}
    assert named_models(["x/a", "y/a"]) == {"x/a": "x/a", "y/a": "y/a"}


def test_a_small_model_keeps_to_one_thread_unless_the_user_says_otherwise(monkeypatch):
    given = []
    monkeypatch.setattr("torch.set_num_threads", given.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(heedful, "load", lambda *_: build("bert"), raising=False)
    load_model("any", "cpu")
    assert given == [1]
    monkeypatch.setattr("heedful.models.attention_hook.SMALL", 10)
    load_model("any", "cpu")
    monkeypatch.undo()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr("torch.set_num_threads", given.append)
    monkeypatch.setattr(heedful, "load", lambda *_: build("bert"), raising=False)
    load_model("any", "cpu")
    assert given == [1]


@pytest.fixture
def table(tmp_path):
    (tmp_path / "r.csv").write_text("key,comment\na,a fine film\nb,a dull story\n")
    return tmp_path / "r.csv"


def test_a_table_is_never_one_text(table, tmp_path):
    for words, file in (([str(table)], None), ([], table)):
        data, _ = input_and_settings(words, file, None, Columns(id="key"))
        assert data.texts == ("a fine film", "a dull story")
        assert data.ids == ("a", "b")
    (tmp_path / "r.xlsx").write_text("PK")
    with pytest.raises(BadInput, match=r"save the table as .csv"):
        input_and_settings([], tmp_path / "r.xlsx", None)
    with pytest.raises(BadInput, match="nowhere.csv cannot be read: there is no such file"):
        input_and_settings(["nowhere.csv"], None, None)
    assert input_and_settings(["I saw it. nowhere.csv"], None, None)[0] == "I saw it. nowhere.csv"


def test_a_plain_file_is_one_text_or_its_lines(tmp_path):
    (tmp_path / "r.txt").write_text("a fine film\na dull story\n")
    assert input_and_settings([str(tmp_path / "r.txt")], None, None)[0] == "a fine film\na dull story\n"
    data, _ = input_and_settings([], tmp_path / "r.txt", None, lines=True)
    assert data.texts == ("a fine film", "a dull story")


def test_one_text_is_chosen_by_its_row(table):
    data, _ = input_and_settings([], table, None, Columns(id="key"))
    assert one_text(data, "b", "compare") == one_text(data, "1", "compare") == "a dull story"
    with pytest.raises(BadInput, match=r"r.csv has 2 texts; compare explains one: add --row b."):
        one_text(data, None, "compare")
    with pytest.raises(BadInput, match="has no row '7'"):
        one_text(data, "7", "compare")
    with pytest.raises(BadInput, match="--row chooses"):
        one_text("a film", "7", "compare")
    assert one_text("a film", None, "compare") == "a film"
