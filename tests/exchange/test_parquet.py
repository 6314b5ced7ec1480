import sys

import pytest
from pyarrow import parquet

from heedful.errors import MissingPackage
from heedful.exchange import parquet as store
from heedful.exchange.parquet import write_parquet

COLUMNS = {"document": int, "method": str, "value": float, "signed": bool}
ROWS = [
    {"document": 3, "method": "lime", "value": 0.1 + 0.2, "signed": True},
    {"document": 4, "method": "שלום", "value": None, "signed": False},
    {"document": 5, "method": None, "value": -1e-300, "signed": None},
]


def test_what_is_written_is_what_is_read(tmp_path):
    assert write_parquet(ROWS, tmp_path / "a.parquet", COLUMNS) == 3
    assert parquet.read_table(tmp_path / "a.parquet").to_pylist() == ROWS


def test_types_hold_where_there_is_no_value_and_no_row(tmp_path):
    for name, rows in (("none", [dict.fromkeys(COLUMNS)]), ("empty", [])):
        write_parquet(rows, tmp_path / f"{name}.parquet", COLUMNS)
        kinds = [str(field.type) for field in parquet.read_schema(tmp_path / f"{name}.parquet")]
        assert kinds == ["int64", "string", "double", "bool"]
        assert parquet.read_table(tmp_path / f"{name}.parquet").num_rows == len(rows)


def test_rows_are_written_a_portion_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_PORTION", 10)
    held = []

    def rows():
        for number in range(35):
            held.append(number)
            yield {"document": number}

    assert write_parquet(rows(), tmp_path / "a.parquet", {"document": int}) == 35
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    assert file.num_row_groups == 4
    assert file.read().to_pydict() == {"document": held}


def test_half_a_character_is_written_as_its_number(tmp_path):
    rows = [{"unit": "good"}, {"unit": "bad \udcff"}, {"unit": None}]
    write_parquet(rows, tmp_path / "a.parquet", {"unit": str})
    assert parquet.read_table(tmp_path / "a.parquet").to_pydict() == {"unit": ["good", "bad \\udcff", None]}


def test_without_pyarrow_a_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingPackage, match=r"Writing a\.parquet needs pyarrow; run `make install`, or pip install pyarrow"
    ):
        write_parquet(ROWS, tmp_path / "a.parquet", COLUMNS)
    assert not (tmp_path / "a.parquet").exists()
