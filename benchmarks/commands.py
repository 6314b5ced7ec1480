"""CPU time of `heedful trust` and `heedful compare`: this tree against commit d730ed7, both measured in one run.

    make bench-trust

The older commit is unpacked into a temporary folder and runs in the same environment. Each pair is one process of
either side, one after the other, in alternating order; the first pair only warms the caches and is not counted. CPU
time is user and system time of the process, with the threads that the command takes by itself, and again with one
thread. The ratio is the median over pairs.

Half of `compare` is spent starting Python and importing torch, on both sides. That share is measured in the same
way and shown beside the whole; the last column is the ratio without it.
"""

import argparse
import io
import os
import resource
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

COMMIT, N_PAIRS = "d730ed7", 3
TREE = Path(__file__).parents[1]
REVIEW = (
    "The film opens slowly, but the first hour is a pleasure: a quiet village, two brothers who no longer speak, and a "
    "letter that nobody dares to open. The actors are wonderful, above all the older brother, and the music is never "
    "loud. Then the story loses its way. A dull chase, a silly twist and an ending that explains too much left me "
    "tired and a little angry. I still laughed, I still cried, and I would watch the first half again; the second "
    "half is a long waste of talent and of our time, not a great film."
)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
START = ("-c", "import torch")
COMPARE = ("-m", "heedful", "compare", REVIEW)
TRUST = ("-m", "heedful", "trust", "imdb", "-n", "20")


def unpack(commit: str, folder: str) -> str | None:
    """Write the files of a commit into a folder; a sentence when that is not possible."""
    archive = subprocess.run(["git", "-C", str(TREE), "archive", commit], capture_output=True, check=False)
    if archive.returncode:
        return f"Commit {commit} is not in this clone; fetch the full history with `git fetch --unshallow`."
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return None


def cpu_seconds(tree: str, arguments: Sequence[str], one_thread: bool) -> float:
    """User and system seconds of one Python process that imports heedful from a tree."""
    environment = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    environment |= {"PYTHONPATH": tree, **(ONE_THREAD if one_thread else {})}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        sys.exit(f"{' '.join(arguments)[:60]} failed in {tree}:\n{process.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pairs(old: str, arguments: Sequence[str], n_pairs: int, one_thread: bool) -> list[tuple[float, float]]:
    """CPU seconds of the older commit and of this tree, measured in turn after one uncounted pair."""
    seconds = []
    for pair in range(n_pairs + 1):
        trees = (old, str(TREE)) if pair % 2 else (str(TREE), old)
        by_tree = {tree: cpu_seconds(tree, arguments, one_thread) for tree in trees}
        seconds.append((by_tree[old], by_tree[str(TREE)]))
    return seconds[1:]


def report(old: str, name: str, arguments: Sequence[str], n_pairs: int, start: float, one_thread: bool) -> None:
    """Print one row: the median CPU time of both sides, and the median ratio with and without the start."""
    measured = pairs(old, arguments, n_pairs, one_thread)
    before, now = (median(side) for side in zip(*measured, strict=True))
    whole = median(now / before for before, now in measured)
    work = median((now - start) / (before - start) for before, now in measured)
    print(f"{name:52}{before:9.2f} s{now:9.2f} s{whole:8.2f}{work:15.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=N_PAIRS)
    n_pairs = parser.parse_args().pairs
    with TemporaryDirectory() as old:
        problem = unpack(COMMIT, old)
        if problem is not None:
            sys.exit(problem)
        start = median(cpu_seconds(old, START, True) for _ in range(n_pairs))
        print(
            f"\nStarting Python and importing torch takes {start:.2f} CPU-s; medians of {n_pairs} alternating pairs\n"
        )
        print(f"{'':52}{COMMIT:>11}{'this tree':>11}{'ratio':>8}{'without start':>15}")
        rows = {"heedful compare, a review of 100 words": COMPARE}
        if Path(os.environ.get("HEEDFUL_DATA", ""), "imdb", "test.parquet").exists():
            rows["heedful trust imdb -n 20"] = TRUST
        else:
            print("`heedful trust imdb` was not measured: set HEEDFUL_DATA to a folder with imdb/test.parquet.")
        for name, arguments in rows.items():
            report(old, name, arguments, n_pairs, start, one_thread=False)
            report(old, f"{name}, one thread", arguments, n_pairs, start, one_thread=True)


if __name__ == "__main__":
    main()
