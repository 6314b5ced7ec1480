"""The reliability cases: faults are reported, runs resume, and every kind runs."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.reliability.case import Case, Fault, Kind, Violation, run_case, sentence_problem
from benchmarks.reliability.checks import nothing_changes
from benchmarks.reliability.damage import damage_bytes, damage_header, damage_json, damage_tensors
from benchmarks.reliability.inputs import draw_settings, draw_text
from benchmarks.reliability.kills import compare_trees
from benchmarks.reliability.pool import Journal, run_kind
from benchmarks.reliability.report import summarise, write_table
from heedful.errors import BadInput
from heedful.explainers import methods

ROOT = Path(__file__).parents[2]


class Planned(Kind):
    """Cases whose results are known."""

    name, title, n, n_chunk, seconds = "planned", "planned cases", 8, 2, 0.2

    def __init__(self, journal=None):
        self.journal = journal

    def prepare(self):
        pass

    def case(self, rng, number):
        return Case(f"case {number}", (self.succeed, self.refuse, self.fail, self.violate)[number % 4])

    def succeed(self):
        if self.journal is not None:
            with self.journal.open("a") as file:
                file.write("ran\n")
        return "success"

    def refuse(self):
        raise BadInput("This is refused.")

    def fail(self):
        return len(3)

    def violate(self):
        raise Violation("finite scores: nan")


def test_errors_violations_and_delays_are_faults_with_their_place_and_a_command():
    kind = Planned()
    assert [run_case(kind, 0, number) for number in (0, 1)] == ["success", "refused"]
    fault = run_case(kind, 5, 2)
    assert isinstance(fault, Fault)
    assert fault.group == "TypeError in tests/benchmarks/test_reliability.py, fail"
    assert "object of type 'int' has no len()" in fault.detail
    assert fault.command(5) == "python -m benchmarks.reliability --only planned --case 2 --seed 5"
    assert run_case(kind, 0, 3).group == "violation: finite scores"
    kind.succeed = lambda: time.sleep(5)
    assert run_case(kind, 0, 0).group.startswith("slow: more than 0.2 s")


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        ("The text contains no words; give at least one.", None),
        ("Traceback (most recent call last).", "text of the interpreter"),
        ("One line.\nAnother line.", "several lines"),
        ("KeyError: 'x'", "no end of a sentence"),
        ("The text \ud800 is broken.", "cannot be printed"),
    ],
)
def test_a_refusal_must_be_one_sentence(sentence, problem):
    assert sentence_problem(sentence) == problem


def test_a_state_that_a_refused_call_changes_is_a_fault(tiny):
    def change_and_refuse():
        random.seed(time.time())
        raise BadInput("This is refused.")

    with pytest.raises(Violation, match="unchanged random state of Python"), nothing_changes(tiny):
        change_and_refuse()


def test_a_run_resumes_and_counts_every_case_once(tmp_path):
    kind, journal = Planned(tmp_path / "ran"), Journal(tmp_path / "planned.jsonl", 0, "source")
    run_kind(kind, 4, 0, 1, journal, lambda _: None)
    with (tmp_path / "planned.jsonl").open("a") as file:
        file.write('{"start": 4, "n"\n')
    summary = summarise(kind, run_kind(kind, 8, 0, 1, journal, lambda _: None), 0)
    assert (tmp_path / "ran").read_text() == "ran\n" * 2
    assert (summary.n, summary.n_success, summary.n_refused, summary.n_faults) == (8, 2, 2, 4)
    assert [entry["n"] for entry in summary.groups.values()] == [2, 2]
    other = Journal(tmp_path / "planned.jsonl", 0, "other source")
    assert other.chunks() == {}


def test_the_same_seed_draws_the_same_case():
    for name, member in methods().items():
        one, two = (
            (draw_text(rng, 9), draw_settings(rng, member)) for rng in (random.Random(name), random.Random(name))
        )
        assert repr(one) == repr(two)


def test_damage_changes_the_file(tiny, tmp_path):
    tiny.save(tmp_path / "model", {"command": "none"})
    content, document = (tmp_path / "model").read_bytes(), json.dumps({"a": [1, 2], "b": {"c": "d"}}).encode()
    for seed in range(40):
        assert damage_bytes(random.Random(seed), content)[0] != content
        assert damage_header(random.Random(seed), content)[0] != content
        assert damage_tensors(random.Random(seed), content)[0] != content
        assert damage_json(random.Random(seed), document)[0] != document or seed


def test_a_lost_a_new_and_a_changed_file_are_seen():
    for other in ({}, {"a": b"1", "b": b"2"}, {"a": b"2"}):
        with pytest.raises(Violation):
            compare_trees("train", {"a": b"1"}, other)
    compare_trees("train", {"a": b"1"}, {"a": b"1"})


def test_the_table_is_put_into_the_page(tmp_path):
    summary = {"title": "command lines", "n": 1000, "n_success": 600, "n_refused": 399, "n_faults": 1}
    (tmp_path / "summary.json").write_text(json.dumps({"kinds": {"commands": summary}}))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table -->\nstale\n<!-- end of table -->\nafter\n")
    write_table(page, tmp_path / "summary.json")
    assert "| command lines | 5 tracebacks in 138 command lines | 1,000 | 600 | 399 | **1** |" in page.read_text()
    assert "stale" not in page.read_text()


INJECTED = """
import random, sys
import numpy as np
from benchmarks.reliability.calls import Calls
from benchmarks.reliability.case import run_case
from benchmarks.reliability.workshop import workshop
from heedful.explainers import random as module
whole = module.Random.explain_batch
def type_error(self, question):
    return whole(self, question) + 3
def not_finite(self, question):
    return [module.replace_scores(e) for e in whole(self, question)]
def global_state(self, question):
    random.random()
    return whole(self, question)
from dataclasses import replace
module.replace_scores = lambda e: replace(e, scores=e.scores * np.nan)
kind = Calls("tiny", str(workshop() / "tiny"), 40, n_long=20, n_chunk=40)
kind.prepare()
kind.usual = ["random"] * 3
for fault in (type_error, not_finite, global_state):
    module.Random.explain_batch = fault
    groups = {getattr(run_case(kind, 0, number), "group", "none") for number in range(40)} - {"none"}
    print(*sorted(groups), sep=" | ")
"""


@pytest.mark.slow
def test_a_method_that_breaks_its_promises_is_reported():
    # In a process of its own: the type checks that the tests switch on refuse what the cases give.
    run = subprocess.run([sys.executable, "-c", INJECTED], cwd=ROOT, capture_output=True, text=True)
    assert run.stderr == ""
    type_error, not_finite, global_state = run.stdout.splitlines()
    assert "TypeError in heedful/explainers/run.py, run_explainer" in type_error
    assert "violation: finite scores (random)" in not_finite
    assert "violation: unchanged random state of Python" in global_state


@pytest.mark.slow
def test_every_kind_runs(tmp_path):
    command = [sys.executable, "-m", "benchmarks.reliability", "--n", "2", "--jobs", "1", "--out", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    kinds = json.loads((tmp_path / "summary.json").read_text())["kinds"]
    assert {"calls-paper", "commands", "files", "kills"} <= {*kinds}
    for summary in kinds.values():
        assert summary["n"] == 2 == summary["n_success"] + summary["n_refused"] + summary["n_faults"]
    assert kinds["calls-paper"]["n_faults"] == kinds["commands"]["n_faults"] == 0, kinds
