"""Training of sparse autoencoders on cached activations: rows a second beside SAELens' trainer, and peak memory.

    make bench-features SAELENS=python          python -m benchmarks.features [--saelens PYTHON]

PYTHON belongs to an environment with SAELens 6.54 and NumPy; without it only our side runs. Every number is CPU time of
one thread, the median over turns; the sides take turns in processes of their own, after a turn that is not counted. A
step is everything from batch to batch: loss, gradients, clipping, optimiser, and what each side tracks. Ours also
contains the making, shuffling and checking of chunks. Memory is the peak of a training above the process at rest.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.features.side import CASES, Sizes, as_argument, write_activations

Side = Callable[[str], dict[str, Any]]


def side_of(python: str, module: str, sizes: Sizes) -> Side:
    """A side in a process of its own."""
    command = [python, "-m", f"benchmarks.features.{module}", as_argument(sizes)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    to, back = process.stdin, process.stdout

    def train(case: str) -> dict[str, Any]:
        to.write(f"{case}\n")
        to.flush()
        answer = back.readline()
        if not answer:
            sys.exit(f"{' '.join(command[:3])} ended:\n{process.communicate()[1][-2000:]}")
        return json.loads(answer)

    return train


def measure(sizes: Sizes, saelens: str | None, n_turns: int, cases: list[str]) -> int:
    """Prints a line for every case; the number of cases in which SAELens is quicker, but for our defaults."""
    sides = {"heedful": side_of(sys.executable, "ours", sizes)}
    if saelens:
        sides["SAELens"] = side_of(saelens, "saelens_side", sizes)
    print(f"{'':24}" + "".join(f"{f'{name}: rows/s':>18}{'peak':>9}" for name in sides) + f"{'ratio':>9}")
    n_missed = 0
    for case in cases:
        answers: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
        for turn in range(n_turns + 1):
            for name, train in sides.items():
                answer = train(case)
                if turn:
                    answers[name].append(answer)
        speeds = {name: sizes.batch_size / median(own["seconds"] for own in every) for name, every in answers.items()}
        peaks = {name: max(own["peak"] - own["rest"] for own in every) for name, every in answers.items()}
        line = "".join(f"{speeds[name]:18,.0f}{peaks[name]:6.0f} MB" for name in sides)
        ratio = speeds["heedful"] / speeds["SAELens"] if saelens else 1.0
        missed = ratio < 1 and "," not in case
        n_missed += missed
        verdict = f"{ratio:8.2f}×{'  MISSED: at least 1×' if missed else ''}" if saelens else ""
        print(f"{case:24}{line}{verdict}", flush=True)
    return n_missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saelens", metavar="PYTHON")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--d-e", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--n-steps", type=int, default=12)
    parser.add_argument("--n-turns", type=int, default=3)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "activations.npy"
        n_rows = max(given.n_steps // 2 * given.batch_size, given.width)
        write_activations(file, n_rows, given.d_e)
        sizes = Sizes(str(file), given.width, batch_size=given.batch_size, n_steps=given.n_steps)
        print(
            f"{n_rows:,} rows of {given.d_e} dimensions, width {given.width:,}, k {sizes.k}, batches of "
            f"{sizes.batch_size:,}, {sizes.n_steps} steps, median of {given.n_turns} turns\n"
        )
        sys.exit(1 if measure(sizes, given.saelens, given.n_turns, given.cases) else 0)


if __name__ == "__main__":
    main()
