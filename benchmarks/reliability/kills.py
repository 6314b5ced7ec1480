"""Killed runs of four commands: resumed, they end with the bytes of a run that nobody stopped."""

import random
import re
import signal
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, final

from benchmarks.reliability.case import Case, Kind, Result, Violation
from benchmarks.reliability.checks import require
from benchmarks.reliability.commands import check_end, data_of, warm
from benchmarks.reliability.process import COUNT, Kill, run_command
from benchmarks.reliability.workshop import workshop

RUNS: Mapping[str, tuple[str, ...]] = {
    "train": ("train", "imdb", "--n-epochs", "4", "--n-validation", "10", "--d-e", "8", "--out", "run"),
    "trust": (
        *("trust", "imdb", "-n", "8", "--methods", "leave-one-out,lime,gradient-l2", "--n-samples", "60"),
        *("--metrics", "deletion,gini,infidelity", "--out", "run"),
    ),
    "reproduce": ("reproduce", "lemma-d5", "gelu", "--quick", "--out", "run"),
    "features": (
        *("features", "train", "FOLDER/layers.safetensors", "--texts", "FOLDER/texts.txt", "--layer", "0"),
        *("--width", "12", "--k", "2", "--n-rows", "400000", "--out", "run"),
    ),
}
CLOCK = re.compile(
    rb'"(?:seconds|spent)": (?:[-+.\de]+|\{[^}]*\})|"resumed": (?:true|false)|"checksum": "\w+"|run on cpu, [^.<]*|'
    rb'<td data-v="[-+.\de]+">[\d,.]+</td></tr>|<svg.*?</svg>',
    re.DOTALL,
)
"""Times and their checksums may differ: in fields of JSON, and in parts of the two pages with their figures."""
TEXTS = (".json", ".jsonl", ".html")


@final
class Kills(Kind):
    """Kills at a random time, or at a random change of a file; and full disks."""

    name, title, n, n_chunk, seconds = "kills", "kills and full disks", 100, 2, 120.0

    def prepare(self) -> None:
        """Runs each command once without a stop."""
        self.folder = workshop()
        self.whole = whole_runs()

    def case(self, rng: random.Random, number: int) -> Case:
        """One command and up to three kills before it may finish; one case in five fills the disk instead."""
        name = [*RUNS][number % len(RUNS)]
        if rng.random() < 0.2:
            size = rng.choice((0, 10, 300, 2_000, 8_000, 30_000, 200_000))
            return Case(f"{name}, files of at most {size:,} bytes, then resumed", lambda: self._fill(name, size))
        kills = [self._kill(rng, name) for _ in range(rng.choice((1, 1, 2, 3)))]
        return Case(f"{name}, killed {kills}, then resumed", lambda: self._check(name, kills))

    def _kill(self, rng: random.Random, name: str) -> Kill:
        number = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        if rng.random() < 0.8:
            return Kill(n_writes=rng.randint(1, self.whole[name].n_writes), signal=number)
        return Kill(seconds=round(rng.uniform(0, 0.8 * self.whole[name].seconds), 3), signal=number)

    def _check(self, name: str, kills: list[Kill]) -> Result:
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="kill-") as own:
            for kill in kills:
                ended = self._run(words_of(name), Path(own), kill)
                require("Traceback (most recent" not in ended.err, f"no traceback of a killed {name}", ended.err[-300:])
            self._resume(name, Path(own))
        return "success"

    def _fill(self, name: str, size: int) -> Result:
        """A full disk ends the command with one sentence; with space again, the run resumes."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="full-") as own:
            ended = run_command(words_of(name), Path(own), data_of(self.folder), self.seconds, file_size=size)
            check_end(words_of(name), ended)
            self._resume(name, Path(own))
        return "success"

    def _resume(self, name: str, own: Path) -> None:
        """The last run succeeds, and leaves what an uninterrupted run leaves: nothing lost, nothing doubled."""
        ended = self._run(words_of(name), own)
        if check_end(words_of(name), ended) != "success":
            raise Violation(f"{name} resumes after a kill: {ended.err[-300:]}")
        compare_trees(name, self.whole[name].files, read_tree(own / "run"))

    def _run(self, words: list[str], own: Path, kill: Kill | None = None) -> Any:
        return run_command(words, own, data_of(self.folder), self.seconds / 3, kill=kill)


def words_of(name: str) -> list[str]:
    """The command line of a run, with the folder of its model."""
    return [word.replace("FOLDER", str(workshop())) for word in RUNS[name]]


@final
class WholeRun(NamedTuple):
    """A run that nobody stopped: its folder, its files, how long it took and how often it changed a file."""

    folder: Path
    files: dict[str, bytes]
    seconds: float
    n_writes: int


@cache
def whole_runs() -> dict[str, WholeRun]:
    """Every command, run once without a stop."""
    runs = {}
    warm(workshop())
    for name in RUNS:
        words = words_of(name)
        own, start = Path(tempfile.mkdtemp(dir=workshop(), prefix=f"whole-{name}-")), monotonic()
        ended = run_command(words, own, data_of(workshop()), Kills.seconds, kill=COUNT)
        require(check_end(words, ended) == "success", f"{name} succeeds", ended.err[-300:])
        n_writes = int(ended.err.splitlines()[-1])
        runs[name] = WholeRun(own / "run", read_tree(own / "run"), monotonic() - start, n_writes)
    return runs


def read_tree(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below the folder, without the times of the run."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    content = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {name: CLOCK.sub(b"", text) if name.endswith(TEXTS) else text for name, text in content.items()}


def compare_trees(name: str, whole: dict[str, bytes], other: dict[str, bytes]) -> None:
    """Raises a Violation for a file that is missing, surplus or different."""
    lost, surplus = sorted({*whole} - {*other}), sorted({*other} - {*whole})
    require(not lost, f"{name} loses no file", lost)
    require(not surplus, f"{name} leaves no other file", surplus)
    for path, content in whole.items():
        if content != other[path]:
            difference = first_difference(content, other[path])
            raise Violation(f"{name} ends with the same bytes ({Path(path).name}): {path}, {difference}")


def first_difference(one: bytes, two: bytes) -> str:
    """What two files hold where they begin to differ."""
    place = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    begin = max(0, place - 30)
    return f"byte {place}: {one[begin : place + 30]!r} … {two[begin : place + 30]!r}"
