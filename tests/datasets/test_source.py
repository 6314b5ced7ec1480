import pytest

import heedful
from heedful.datasets.source import check_labels, from_hub, in_folder, read_parquet
from heedful.errors import BadInput, HeedfulError, Offline

NAMES = sorted({*heedful.datasets()} - {"topics", "histogram", "dyck", "questions"})
"""Topics are drawn, so they need no file."""


def test_a_folder_comes_before_the_hub(write):
    path = write("some/file.parquet", text=["a"])
    assert in_folder("some/file.parquet") == path
    with pytest.raises(BadInput, match="HEEDFUL_DATA names a folder without some/other.parquet; unset it"):
        in_folder("some/other.parquet")


def test_without_a_folder_there_is_no_local_file(monkeypatch):
    monkeypatch.setenv("HEEDFUL_DATA", "")
    assert in_folder("some/file.parquet") is None


def test_rows_have_the_requested_columns(write):
    path = write("a.parquet", text=["one", "two"], label=[0, 1], more=[None, None])
    assert read_parquet(path, {"text": str, "label": int}) == [{"text": "one", "label": 0}, {"text": "two", "label": 1}]


@pytest.mark.parametrize(
    "columns",
    [
        {"text": ["a"]},
        {"text": ["a", None], "label": [0, 1]},
        {"text": [1], "label": [0]},
        {"text": ["a"], "label": [0.5]},
    ],
    ids=["missing", "gap", "number for text", "fraction for label"],
)
def test_a_column_that_is_missing_or_has_gaps_is_one_sentence(write, columns):
    with pytest.raises(
        BadInput, match=r"a.parquet must have the columns text \(str\), label \(int\), without missing values"
    ):
        read_parquet(write("a.parquet", **columns), {"text": str, "label": int})


def test_a_label_that_is_no_class_is_one_sentence(write):
    path = write("a.parquet", text=["a"])
    check_labels(path, [0, 1, 2], ("x", "y", "z"))
    with pytest.raises(BadInput, match="a.parquet labels 2 of its 4 rows with something other than 0 to 1, such as -1"):
        check_labels(path, [0, -1, 1, 2], ("x", "y"))


def test_the_hub_gives_a_path(hub):
    hub("owner/name", "data/a.parquet", text=["a"])
    assert read_parquet(from_hub("A", "a/a.parquet", "owner/name", "data/a.parquet"), {"text": str}) == [{"text": "a"}]


def test_without_the_hub_the_sentence_names_the_file_for_a_folder(hub):
    with pytest.raises(Offline, match="A is not cached.*or set HEEDFUL_DATA to a folder with a/a.parquet"):
        from_hub("A", "a/a.parquet", "owner/name", "data/a.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_no_data_set_can_be_had_offline_and_each_says_so(hub, name):
    with pytest.raises(HeedfulError, match="set HEEDFUL_DATA to a folder with .*parquet"):
        heedful.datasets()[name]().examples("train")


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_without_the_files_is_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    with pytest.raises(BadInput, match="HEEDFUL_DATA names a folder without .*parquet"):
        heedful.datasets()[name]().examples("train")


@pytest.mark.parametrize("name", NAMES)
def test_every_data_set_has_a_name_classes_and_a_one_line_summary(name):
    member = heedful.datasets()[name]
    assert member.name == name == member.__module__.rpartition(".")[2].replace("_", "-")
    assert len(set(member.classes)) == len(member.classes) >= 2
