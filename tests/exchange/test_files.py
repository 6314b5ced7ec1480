"""Files of scores, and what is wrong with them by its line."""

import json

import pytest

import heedful
from heedful.errors import BadInput
from heedful.exchange import read_scores

ROW = {"text": "good film", "name": "mine", "scores": [1.0, -2]}
EMPTY = {"unit": None, "target": None, "signed": None}


def test_a_dictionary_a_list_and_lines_are_read(tmp_path, tiny):
    file = tmp_path / "scores.jsonl"
    file.write_text(json.dumps(ROW, indent=1))
    assert read_scores(file) == [ROW | EMPTY]
    more = {
        "text": "a good plot",
        "name": "yours",
        "scores": {"plot": 0.5},
        "unit": "type",
        "target": 1,
        "signed": True,
    }
    pair = {"text": ["good film", "plot"], "name": "z", "scores": [["good", 1.0]], "target": "positive"}
    rows = [ROW | EMPTY, more, EMPTY | pair | {"text": heedful.Pair("good film", "plot")}]
    file.write_text("\ufeff" + "\n\n".join(json.dumps(row) for row in (ROW, more, pair)) + "\n", encoding="utf-8")
    assert read_scores(str(file)) == rows
    file.write_text(json.dumps([ROW, more, pair]))
    assert read_scores(file) == rows
    for row in rows[:2]:
        asked = {field: row[field] for field in ("name", "unit", "target", "signed")}
        read = heedful.read(tiny, row["text"], row["scores"], **asked)
        assert read.method == f"{row['name']} (read)"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "line 2: invalid JSON (Expecting property name enclosed in double quotes, column 2)."),
        ("3", "line 2: got int; give a dictionary with text, name and scores."),
        ({"scores": None}, "line 2: scores is missing; give text, name and scores."),
        ({"text": None}, "line 2: text is missing; give text, name and scores."),
        ({"text": 3}, "line 2: the text must be a string, or a list of two strings for a pair; got 3."),
        ({"text": ["a"]}, "line 2: the text must be a string, or a list of two strings for a pair; got ['a']."),
        ({"name": " "}, "line 2: the name must be a non-empty string, such as the name of the method; got ' '."),
        ({"scores": []}, "line 2: scores must be numbers, or words with a number each; got nothing."),
        ({"scores": [1, True]}, "line 2: scores must be numbers, or words with a number each; got [1, True]."),
        ({"scores": ["1"]}, "line 2: scores must be numbers, or words with a number each; got ['1']."),
        ({"scores": {"a": None}}, "line 2: scores must be numbers, or words with a number each; got {'a': None}."),
        ({"scores": [float("nan")]}, "line 2: a score is NaN; give finite numbers."),
        (
            {"score": 1},
            "line 2: There is no field 'score'; did you mean 'scores'? Known: name, scores, signed, target, "
            "text, unit.",
        ),
        (
            {"unit": "words"},
            "line 2: There is no unit 'words'; did you mean 'word'? Known: passage, patch, segment, sentence, "
            "token, type, word.",
        ),
        ({"target": 1.5}, "line 2: the target must be a class by number or name; got 1.5."),
        ({"signed": "yes"}, "line 2: signed must be true or false; got 'yes'."),
    ],
)
def test_errors_name_the_line(tmp_path, line, sentence):
    file = tmp_path / "scores.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + (line if isinstance(line, str) else json.dumps(ROW | line)))
    with pytest.raises(BadInput) as error:
        read_scores(file)
    assert str(error.value) == f"scores.jsonl, {sentence}"


def test_a_missing_binary_or_empty_file_is_an_error(tmp_path):
    with pytest.raises(BadInput, match="^none.json cannot be read: No such file or directory"):
        read_scores(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(BadInput, match="^bytes.json cannot be read: it is not UTF-8 text"):
        read_scores(tmp_path / "bytes.json")
    for content in ("", "[]"):
        (tmp_path / "empty.json").write_text(content)
        with pytest.raises(BadInput, match="^empty.json contains no scores; write lines such as"):
            read_scores(tmp_path / "empty.json")
    (tmp_path / "list.json").write_text(json.dumps([ROW, 3]))
    with pytest.raises(BadInput, match="^list.json, entry 2: got int"):
        read_scores(tmp_path / "list.json")
