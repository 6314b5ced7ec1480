import io
import sys
from types import SimpleNamespace

import pytest

from heedful import progress
from heedful.progress import in_notebook, progress_of, say, show_progress, without_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Every reading of the clock is a second later than the one before."""
    seconds = iter(range(10_000))
    monkeypatch.setattr(progress, "perf_counter", lambda: float(next(seconds)))
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


@pytest.mark.usefixtures("clock")
def test_a_slow_run_is_shown_on_a_terminal_and_the_line_is_cleared(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_of(show_progress, "texts") as watch:
        for done in range(1, 4):
            watch(done, 10)
        assert sys.stderr.getvalue() == ""
        watch(4, 10)
    line = "4 of 10 texts, 6 s left"
    assert sys.stderr.getvalue() == f"\r{line}\r{' ' * len(line)}\r"


@pytest.mark.usefixtures("clock")
def test_nothing_is_shown_where_nobody_watches(capsys):
    with without_progress(), progress_of(show_progress, "texts") as watch:
        watch(1, 2)
    for given in (show_progress, None, False):
        with progress_of(given, "texts") as watch:
            for done in range(20):
                watch(done, 20)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("clock")
def test_a_notebook_sees_it(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not in_notebook(), "ipykernel may be imported by a program that runs notebooks"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=object))
    assert in_notebook()
    with progress_of(show_progress, "masks") as watch:
        for done in range(20):
            watch(done, 20)
    assert "19 of 20 masks" in capsys.readouterr().err


def test_a_function_of_the_user_is_called():
    with progress_of(print, "texts") as watch:
        assert watch is print


def test_a_sentence_is_written_where_somebody_watches(monkeypatch):
    for stream, written in ((Terminal(), "Read 3 texts.\n"), (io.StringIO(), "")):
        monkeypatch.setattr(sys, "stderr", stream)
        say("Read 3 texts.")
        assert stream.getvalue() == written
