"""The command line as a user runs it."""

import io
import sys

import pytest

from heedful.cli.app import main


@pytest.fixture
def heedful_command(monkeypatch, capsys):
    """Runs a command and gives its exit code, what it printed, and what it said on standard error."""

    def run(*words, stdin=None):
        monkeypatch.setattr(sys, "argv", ["heedful", *map(str, words)])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err

    return run
