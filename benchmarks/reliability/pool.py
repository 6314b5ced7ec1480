"""Runs the cases of a kind in several processes, and keeps what was done, so that a stopped run resumes."""

import hashlib
import json
import multiprocessing
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import torch

from benchmarks.reliability.case import TREE, Fault, Kind, run_case

_MEMORY = 8_000_000_000
_kinds: dict[str, Kind] = {}
"""The prepared kinds; forked processes find them here."""


@final
@dataclass(frozen=True)
class Chunk:
    """The results of some cases in a row."""

    start: int
    n: int
    n_success: int
    n_refused: int
    seconds: float
    faults: tuple[Fault, ...]

    @staticmethod
    def of(row: dict[str, Any]) -> "Chunk":
        """The chunk that a line of the journal holds."""
        faults = tuple(Fault(**fault) for fault in row["faults"])
        return Chunk(row["start"], row["n"], row["n_success"], row["n_refused"], row["seconds"], faults)


@final
@dataclass(frozen=True)
class Journal:
    """The chunks of one kind, one JSON line each. Lines of other source code or another seed do not count."""

    path: Path
    seed: int
    source: str

    def chunks(self) -> dict[int, Chunk]:
        """The chunks that are done, by their first case; an incomplete last line is left out."""
        if not self.path.exists():
            return {}
        rows = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        own = [row for row in rows if row["seed"] == self.seed and row["source"] == self.source]
        return {row["start"]: Chunk.of(row) for row in own}

    def add(self, chunk: Chunk) -> None:
        """Adds a chunk that is done."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        row = {**asdict(chunk), "seed": self.seed, "source": self.source}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def source_hash() -> str:
    """A hash of the code under test and of this package: results of other code are not mixed with its own."""
    digest = hashlib.sha256()
    for folder in ("heedful", "benchmarks/reliability"):
        for path in sorted((TREE / folder).rglob("*.py")):
            digest.update(path.as_posix().removeprefix(TREE.as_posix()).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def run_kind(kind: Kind, n: int, seed: int, jobs: int, journal: Journal, watch: Callable[[int], None]) -> list[Chunk]:
    """The chunks of the first n cases; those that the journal holds are not run again. `watch` gets the cases done."""
    done = {start: chunk for start, chunk in journal.chunks().items() if start + chunk.n <= n}
    starts = list(_starts(n, kind.n_chunk, done))
    if starts:
        torch.set_num_threads(1)
        kind.prepare()
        _kinds[kind.name] = kind
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _limit_memory) as pool:
        running = {pool.submit(run_chunk, kind.name, seed, start, n_cases) for start, n_cases in starts}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                chunk = future.result()
                journal.add(chunk)
                done[chunk.start] = chunk
                watch(sum(chunk.n for chunk in done.values()))
    return [done[start] for start in sorted(done)]


def _starts(n: int, n_chunk: int, done: dict[int, Chunk]) -> Iterator[tuple[int, int]]:
    covered = {number for start, chunk in done.items() for number in range(start, start + chunk.n)}
    todo = [number for number in range(n) if number not in covered]
    while todo:
        run = [number for place, number in enumerate(todo[:n_chunk]) if number == todo[0] + place]
        yield run[0], len(run)
        todo = todo[len(run) :]


def run_chunk(name: str, seed: int, start: int, n: int) -> Chunk:
    """Runs cases one after the other, in a forked process."""
    begin, results, faults = cpu_seconds(), {"success": 0, "refused": 0}, []
    for number in range(start, start + n):
        result = run_case(_kinds[name], seed, number)
        if isinstance(result, Fault):
            faults.append(result)
        else:
            results[result] += 1
    seconds = cpu_seconds() - begin
    return Chunk(start, n, results["success"], results["refused"], seconds, tuple(faults))


def cpu_seconds() -> float:
    """The processor time of this process and its children: a busy machine does not change it."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _limit_memory() -> None:
    # A case that asks for all memory must fail itself, and not take the machine with it.
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
