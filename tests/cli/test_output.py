"""Results are printed, and written where a file is named."""

import json

import pytest

import heedful
from heedful.cli.output import deliver
from heedful.errors import BadInput


@pytest.fixture(scope="module")
def explanation(paper):
    return heedful.explain(paper, "a fine film", "leave-one-out")


def test_json_is_the_result_as_a_dictionary(explanation, capsys):
    deliver(explanation, None, as_json=True)
    printed = capsys.readouterr()
    assert json.loads(printed.out) == json.loads(json.dumps(explanation.as_dict()))
    assert printed.err == ""


def test_a_picture_is_printed_and_the_file_named(explanation, capsys, tmp_path):
    deliver(explanation, tmp_path / "report.html", as_json=False)
    printed = capsys.readouterr()
    assert "fine" in printed.out
    assert printed.err == f"Wrote {tmp_path / 'report.html'}\n"
    assert "fine" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_file_that_cannot_be_written_is_one_sentence(explanation, tmp_path):
    with pytest.raises(BadInput, match="cannot be written"):
        deliver(explanation, tmp_path / "no" / "folder" / "report.html", as_json=True)
