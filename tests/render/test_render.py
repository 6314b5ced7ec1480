import json
import sys
import webbrowser

import pytest

import heedful
from heedful.errors import BadInput
from heedful.render import show, write, write_page
from heedful.run_folder import unsealed


def test_a_terminal_gets_text(tiny, capsys):
    show(heedful.explain(tiny, "good film", "attention-mean"))
    assert "attention-mean" in capsys.readouterr().out


def test_a_browser_gets_a_page(tiny, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    show(heedful.compare(tiny, "good film", n_samples=50), where="browser")
    assert opened[0].startswith("file://")


def test_a_notebook_gets_html(tiny, monkeypatch):
    import types

    shown = []
    display = types.ModuleType("IPython.display")
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = object
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    explanation = heedful.explain(tiny, "good film", "attention-mean")
    show(explanation)
    assert shown == [explanation]


def test_the_ending_of_a_file_decides_what_is_written(tiny, tmp_path):
    comparison = heedful.compare(tiny, "good film", ["attention-mean", "random"])
    starts = {".html": b"<!doctype html>", ".json": b"{", ".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for ending, start in starts.items():
        path = tmp_path / f"report{ending}"
        write(comparison, path)
        assert path.read_bytes().startswith(start)
    assert unsealed((tmp_path / "report.json").read_text()) == json.loads(json.dumps(comparison.as_dict()))
    with pytest.raises(BadInput, match="must end in .html, .json, .png, .svg or .pdf; 'report.txt'"):
        write(comparison, tmp_path / "report.txt")


def test_several_results_are_written_on_one_page(tiny, tmp_path):
    results = {text: heedful.explain(tiny, text, "attention-mean") for text in ("good film", "a bad plot")}
    write_page(results, tmp_path / "page.html", "Two")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>good film</h2>" in html
    assert "<h2>a bad plot</h2>" in html
    with pytest.raises(BadInput, match="must end in .html; 'page.json'"):
        write_page(results, tmp_path / "page.json", "Two")
    with pytest.raises(BadInput, match="nothing to write"):
        write_page({}, tmp_path / "page.html", "Two")
