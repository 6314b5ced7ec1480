import csv
import io

import pandas as pd
import polars as pl
import pytest

from heedful.datasets.table import file_text, frame_table, numbered_lines, package_of, read_table
from heedful.errors import BadInput

HARD = pd.DataFrame(
    {
        "text": ['a "fine" film; long, too', "two\nlines\r\nof it", "tab\there", "é ü 😀", "x" * 200_000],
        "label": ["1", "0", "1", "0", "1"],
    }
)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_separated_file_is_read_as_pandas_reads_it(tmp_path, mark, start):
    path = tmp_path / "a.csv"
    path.write_bytes((start + HARD.to_csv(index=False, sep=mark, quoting=csv.QUOTE_MINIMAL)).encode())
    table = read_table(path)
    wanted = pd.read_csv(path, sep=mark, dtype=str)
    assert {name: list(values) for name, values in table.columns.items()} == wanted.to_dict("list")
    assert csv.field_size_limit() == 131_072


def test_an_index_without_a_name_and_empty_lines_are_no_texts(tmp_path):
    (tmp_path / "a.csv").write_text("\n".join([",text,label", "0,a,1", "", "1,,0", ""]))
    table = read_table(tmp_path / "a.csv")
    assert table.columns == {"text": ["a", None], "label": ["1", "0"]}
    assert list(table.places) == ["line 2", "line 4"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,b\n1,2\n1,2,3\n", "t.csv, line 3: 3 fields, but the first line names 2 columns"),
        ('a,b\n1,"2\n3,4\n', "t.csv, line 3: unexpected end of data"),
        ("a,a\n1,2\n", "t.csv has two columns of one name"),
        (b"\xff\xfe", "not a UTF-8 text file"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, content, sentence):
    (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput, match=sentence):
        read_table(tmp_path / "t.csv")


def test_lines_of_json_may_lack_fields(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n\n{"b": [2]}\n')
    table = read_table(tmp_path / "t.jsonl")
    assert table.columns == {"a": [1, None], "b": [None, [2]]}
    assert table.places == ["line 1", "line 3"]
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n[2]\n')
    with pytest.raises(BadInput, match="line 2: a line must be a dictionary"):
        read_table(tmp_path / "t.jsonl")


def test_frames_are_known_by_their_package():
    frame = pl.DataFrame({"a": [1, None]})
    assert frame_table(frame).columns == {"a": [1, None]}
    assert [package_of(data) for data in (frame, HARD, ["a"], "a")] == ["polars", "pandas", "", ""]
    with pytest.raises(BadInput, match="collect"):
        frame_table(frame.lazy())
    with pytest.raises(BadInput, match=r"pandas.*Index is not one table"):
        frame_table(HARD.index)
    with pytest.raises(BadInput, match="two columns of one name"):
        frame_table(pd.read_csv(io.StringIO("1,2"), header=None, names=["a", "b"]).set_axis(["a", "a"], axis=1))


def test_lines_are_numbered(tmp_path):
    (tmp_path / "t.txt").write_text("a\n\nb\n")
    assert numbered_lines(tmp_path / "t.txt") == [(1, "a"), (3, "b")]
    assert file_text(tmp_path / "t.txt") == "a\n\nb\n"


def test_quoted_headers_are_read_with_every_delimiter(tmp_path):
    for mark in ",;\t":
        lines = ['"text"', '"label"'], ['"a fine, film; yes\tno"', '"1"'], ['"dull"', "0"]
        (tmp_path / "r.csv").write_text("".join(mark.join(line) + "\n" for line in lines))
        assert read_table(tmp_path / "r.csv").columns == {
            "text": ["a fine, film; yes\tno", "dull"],
            "label": ["1", "0"],
        }


def test_a_line_ends_at_a_line_feed_alone(tmp_path):
    (tmp_path / "n.txt").write_text("a fine\u0085film\nvery\u2028dull\x0b\r\nso so", encoding="utf-8")
    assert [line for _, line in numbered_lines(tmp_path / "n.txt")] == [
        "a fine\u0085film",
        "very\u2028dull\x0b",
        "so so",
    ]
    (tmp_path / "n.jsonl").write_text('{"text": "a fine\u0085film"}\n', encoding="utf-8")
    assert read_table(tmp_path / "n.jsonl").columns == {"text": ["a fine\u0085film"]}
