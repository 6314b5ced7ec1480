"""Progress callbacks, and what is printed when a run stops or will be slow."""

from types import SimpleNamespace

import pytest

from heedful.cli.progress import epochs_bar, experiments_bar, masks_bar, texts_bar


class Cost(SimpleNamespace):
    def __str__(self):
        return "about 3 minutes"


def test_only_a_slow_run_is_announced(capsys):
    with masks_bar() as callbacks:
        callbacks["announce"](Cost(seconds=0.1))
        assert capsys.readouterr().err == ""
        callbacks["announce"](Cost(seconds=180.0))
        assert "Expected cost: about 3 minutes. Ctrl-C stops" in " ".join(capsys.readouterr().err.split())
        callbacks["progress"](3, 10)


@pytest.mark.parametrize(
    ("bar", "sentence"),
    [
        (masks_bar, "stopped before there were enough samples for an explanation"),
        (texts_bar, "stopped before two texts were measured"),
    ],
)
def test_a_run_that_is_stopped_with_nothing_to_show_says_so(capsys, bar, sentence):
    with pytest.raises(KeyboardInterrupt), bar():
        raise KeyboardInterrupt
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_the_epochs_that_were_worked_on_are_listed():
    with epochs_bar(3) as (watch, started):
        assert started == []
        watch(1, 1, 2)
        watch(2, 1, 2)
    assert started == [1, 2]


def test_finished_experiments_are_counted(capsys):
    with experiments_bar(2) as (watch, finish):
        watch("figure-1", 1, 4)
        finish("figure-1: 3 agrees")
        finish("figure-2: [2] agrees")
    assert capsys.readouterr().err.splitlines() == ["1 of 2  figure-1: 3 agrees", "2 of 2  figure-2: [2] agrees"]


@pytest.mark.parametrize("bar", [masks_bar, texts_bar, lambda: epochs_bar(3), lambda: experiments_bar(2)])
def test_nothing_is_drawn_where_nobody_watches(capsys, monkeypatch, bar):
    # A forced colour makes rich take a file for a terminal.
    monkeypatch.setenv("FORCE_COLOR", "1")
    with bar() as callbacks:
        watch = callbacks["progress"] if isinstance(callbacks, dict) else callbacks
        watch = watch[0] if isinstance(watch, tuple) else watch
        for done in range(200):
            watch(*([1, done, 200] if bar not in (masks_bar, texts_bar) else [done, 200]))
    assert capsys.readouterr().err == ""
