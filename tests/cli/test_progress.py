"""Progress callbacks, and what is printed when a run stops or will be slow."""

from types import SimpleNamespace

import pytest

from heedful.cli.progress import epochs_bar, experiments_bar, masks_bar, probes_bar, texts_bar


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


def test_the_bar_of_probes_has_the_name_of_the_present_one(capsys, monkeypatch):
    shown = []
    monkeypatch.setattr("heedful.cli.progress.Progress.update", lambda self, job, **new: shown.append(new))
    with probes_bar(["erasure", "permuted"], resumes=True) as watch:
        for done in (0, 99, 100, 200):
            watch(done, 200)
    assert [new["description"] for new in shown] == ["erasure", "erasure", "permuted", "permuted"]
    assert {new["total"] for new in shown} == {200}


def test_nothing_is_drawn_where_nobody_watches(capsys, monkeypatch):
    # A forced colour makes rich take a file for a terminal.
    monkeypatch.setenv("FORCE_COLOR", "1")
    with masks_bar() as masks, texts_bar() as texts:
        for done in range(200):
            masks["progress"](done, 200)
            texts(done, 200)
    with epochs_bar(3) as (epochs, _):
        epochs(1, 1, 2)
    with experiments_bar(2) as (experiments, _):
        experiments("figure-1", 1, 4)
    assert capsys.readouterr().err == ""
