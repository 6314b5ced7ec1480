import json
import sys

import pytest
from pyarrow import parquet

from heedful.errors import BadInput
from heedful.render.trust_files import write_report
from heedful.render.trust_page import trust_page
from heedful.run_folder import unsealed
from tests.render.reports import METHODS, planted


@pytest.fixture(scope="module")
def report():
    return planted(n_documents=4)


def test_a_folder_holds_the_page_what_it_says_and_every_number(report, tmp_path):
    written = write_report(report, tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert written.files == ("report.html", "report.json", "measurements.parquet", "scores.parquet")
    assert written.missing == ""
    assert sorted(path.name for path in folder.iterdir()) == sorted(written.files)
    assert (folder / "report.html").read_text(encoding="utf-8") == trust_page(report)
    assert unsealed((folder / "report.json").read_text()) == json.loads(json.dumps(report.as_dict()))


def test_measurements_are_the_rows_of_the_report(report, tmp_path):
    write_report(report, tmp_path)
    rows = parquet.read_table(tmp_path / "measurements.parquet").to_pylist()
    assert rows == list(report.rows())
    assert len(rows) == 4 * 4 * 3
    missing = [row for row in rows if row["value"] is None]
    assert len(missing) == 4
    assert all("needs signed scores" in row["reason"] for row in missing)


def test_scores_are_those_of_every_unit(report, tmp_path):
    write_report(report, tmp_path)
    rows = parquet.read_table(tmp_path / "scores.parquet").to_pylist()
    assert len(rows) == 4 * len(METHODS) * 6
    for row in rows:
        one = report.documents[row["document"]]
        assert row["score"] == one.scores[row["method"]][row["number"]]
        assert row["unit"] == one.units[row["number"]]


def test_without_pyarrow_the_rest_is_written_with_a_message(report, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    written = write_report(report, tmp_path)
    assert written.files == ("report.html", "report.json")
    assert "pyarrow" in written.missing
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_a_folder_that_cannot_be_written_is_named(report, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="report.html cannot be written"):
        write_report(report, tmp_path / "file")
