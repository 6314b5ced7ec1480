import json

import pytest

import heedful
from heedful.errors import BadInput, CannotWrite
from heedful.render.probes.probe_files import save_probes, write_probes
from heedful.render.probes.probe_page import probe_page
from heedful.run_folder import unsealed
from tests.render.probes.planted_reports import planted_probes


@pytest.fixture(scope="module")
def report():
    return planted_probes()


def test_a_folder_gets_the_page_and_the_numbers(report, tmp_path):
    folder = tmp_path / "new" / "folder"
    assert write_probes(report, folder) == ("report.html", "report.json")
    assert (folder / "report.html").read_text(encoding="utf-8") == probe_page(report)
    assert unsealed((folder / "report.json").read_text()) == json.loads(json.dumps(report.as_dict()))


def test_numbers_have_no_seconds_so_that_a_resumed_run_writes_the_same(report):
    assert "seconds" not in json.dumps(report.as_dict())


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_a_file_is_written_by_its_ending(report, tmp_path, name):
    report.save(tmp_path / name)
    write_probes(report, tmp_path / "folder")
    assert (tmp_path / name).read_bytes() == (tmp_path / "folder" / name).read_bytes()


def test_any_other_path_is_a_folder(report, tmp_path):
    save_probes(report, tmp_path / "v1.2")
    assert (tmp_path / "v1.2" / "report.html").exists()


def test_a_picture_and_a_file_in_place_of_the_folder_are_refused(report, tmp_path):
    with pytest.raises(BadInput, match=r"must end in \.html or \.json"):
        report.save(tmp_path / "report.png")
    (tmp_path / "taken").write_text("")
    with pytest.raises(CannotWrite, match="it is a file"):
        report.save(tmp_path / "taken")


def test_show_prints_the_report(report, capsys):
    heedful.show(report)
    assert "What attention can be used for in this model" in capsys.readouterr().out
