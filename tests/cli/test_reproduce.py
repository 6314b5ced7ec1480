"""`heedful reproduce` as a newcomer types it, good and bad; and killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import heedful
from heedful.cli.reproduce import _print_claims
from heedful.experiments.claim import Claim
from heedful.experiments.outcome import Outcome
from tests.experiments.test_workspace import saved


def test_list_names_every_experiment_once(heedful_command):
    code, out, err = heedful_command("reproduce", "--list")
    assert (code, err) == (0, "")
    for name, member in heedful.experiments().items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"  {name} ")]
        assert member.title in line
        assert member.source in line
    code, out, _ = heedful_command("reproduce", "--list", "--json")
    assert {row["name"] for row in json.loads(out)} == set(heedful.experiments())


@pytest.mark.slow
def test_one_figure_is_done_and_named(heedful_command, tmp_path):
    code, out, err = heedful_command("reproduce", "figure-5", "--quick", "--out", tmp_path)
    assert code == 0
    assert "corrected" in out
    assert f"Wrote {tmp_path / 'report.html'}" in err
    assert (tmp_path / "figure-5" / "gradients.svg").exists()


@pytest.mark.slow
def test_a_text_of_one_s_own_is_drawn(heedful_command, tmp_path):
    code, out, _ = heedful_command(
        "reproduce", "figure-5", "--text", "a fine film , but far too long", "--quick", "--out", tmp_path, "--json"
    )
    assert code == 0
    assert json.loads(out)[0]["name"] == "figure-5"
    words = json.loads((tmp_path / "figure-5" / "numbers.json").read_text(encoding="utf-8"))["words"]
    assert [row["word"] for row in words[:4]] == ["a", "fine", "film", ","]


def test_mistakes_are_one_sentence(heedful_command, tmp_path):
    for given, message in (
        (("figure-9",), "There is no experiment 'figure-9'; did you mean 'figure-"),
        (("figure-5", "--text", "a", "--file", "b"), "Give --text or --file, not both."),
        (("figure-5", "--device", "cuda:9"), "This machine has no device 'cuda:9'"),
        (("figure-5", "--seed", "-1"), "The seed must be a whole number ≥ 0"),
    ):
        code, out, err = heedful_command("reproduce", *given, "--quick", "--out", tmp_path / "out")
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_claim_that_was_not_measured_is_printed_with_its_reason(capsys):
    claim = Claim("equal", "", "", "not measured", "this model has no layers.")
    _print_claims([Outcome("figure-5", "paper", "Title", "source", "about", True, "cpu", 1.0, (claim,))])
    assert "equal: this model has no layers." in capsys.readouterr().out


def test_a_text_that_cannot_be_explained_fails_with_its_sentence(heedful_command, tmp_path):
    code, _, err = heedful_command("reproduce", "figure-5", "--text", "zzzqqq", "--quick", "--out", tmp_path)
    assert code == 1
    assert "not measured: figure-5" in err
    assert "know" in (tmp_path / "report.html").read_text(encoding="utf-8")


def run(folder, **options):
    command = [sys.executable, "-m", "heedful", "reproduce", "appendix-b1", "--quick", "--out", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


@pytest.mark.slow
def test_killed_at_any_moment_it_ends_with_the_same_numbers(tmp_path):
    surroundings = {**os.environ, "HEEDFUL_DATA": ""}
    whole = run(tmp_path / "whole", env=surroundings)
    assert whole.wait(timeout=300) == 0
    n_steps = len(list((tmp_path / "whole" / "appendix-b1" / "steps").iterdir()))
    assert n_steps > 2
    folder = tmp_path / "killed" / "appendix-b1"
    for n_done in (n_steps // 2,):
        started = run(tmp_path / "killed", env=surroundings)
        while len(list(folder.glob("steps/*.json"))) < n_done and started.poll() is None:
            time.sleep(0.002)
        started.send_signal(signal.SIGKILL)
        started.wait()
    assert run(tmp_path / "killed", env=surroundings).wait(timeout=300) == 0
    expected = {path.name: path.read_bytes() for path in (tmp_path / "whole" / "appendix-b1").glob("*.*")}
    files = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    apart = {"measured.json", "outcome.json"}  # They hold the seconds.
    assert files.keys() == expected.keys()
    assert [name for name in files.keys() - apart if files[name] != expected[name]] == []
    assert not list(Path(tmp_path).rglob("*.new"))


def test_what_does_not_apply_to_a_model_is_no_failure_unless_it_is_named(heedful_command, tmp_path, monkeypatch):
    catalogue = {name: heedful.experiments()[name] for name in ("embeddings", "figure-2")}
    monkeypatch.setattr("heedful.experiments.run.experiments_in_order", lambda: catalogue)
    model = saved("transformer", tmp_path / "model")
    options = ("--quick", "--model", model, "--text", "good film", "--out")
    code, out, err = heedful_command("reproduce", *options, tmp_path / "all")
    assert (code, "single layer" in out) == (0, True)
    assert "not measured: embeddings;" in err
    assert heedful_command("reproduce", "embeddings", *options, tmp_path / "one")[0] == 1
