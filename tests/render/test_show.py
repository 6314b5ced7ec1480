import sys
import webbrowser

import heedful
from heedful.render import show


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
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    explanation = heedful.explain(tiny, "good film", "attention-mean")
    show(explanation)
    assert shown == [explanation]
