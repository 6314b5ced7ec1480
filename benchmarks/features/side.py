"""What both sides have in common: the cached activations, the sizes, and a process that trains when it is told to.

A side reads lines with the name of a case, trains, and answers with a line of JSON: CPU seconds a step, and the peak of
its memory. So each may run in an environment of its own, in turn with the other.
"""

import ctypes
import gc
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import final

import numpy as np
import torch

CASES = ("relu", "topk", "batchtopk", "jumprelu", "matryoshka", "matryoshka, defaults")
"""Kinds; `matryoshka` as its paper has it, and with our defaults, which make a second pass over every batch."""


@final
@dataclass(frozen=True)
class Sizes:
    """The sizes of a training; the activations are an array in a file."""

    file: str
    width: int = 1024
    k: int = 32
    batch_size: int = 4096
    n_steps: int = 12

    @property
    def inner_widths(self) -> list[int]:
        """Those of matryoshka, without the whole width."""
        return [self.width // part for part in (32, 8, 2)]

    def rows(self) -> np.ndarray:
        """The activations."""
        return np.load(self.file)


def write_activations(path: Path, n: int, d_e: int) -> None:
    """Sums of a few of 4 · d_e directions, and noise, in single precision."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(4 * d_e, d_e)).astype(np.float32) / np.sqrt(d_e)
    active = rng.random((n, len(directions)), dtype=np.float32) * (rng.random((n, len(directions))) < 0.02)
    np.save(path, active @ directions + 0.02 * rng.normal(size=(n, d_e)).astype(np.float32))


@final
class Clock:
    """CPU seconds at every step; the first two steps are not counted, since they allocate what later ones use."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def tick(self) -> None:
        """Called once a step."""
        self.times.append(process_time())

    @property
    def seconds(self) -> float:
        """The mean of a step."""
        counted = self.times[2:]
        return (counted[-1] - counted[0]) / (len(counted) - 1)


def serve(train: Callable[[str, Sizes, Clock], None]) -> None:
    """Trains whatever case it reads, until there are no more."""
    torch.set_num_threads(1)
    # Progress bars and notes must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sizes = Sizes(**json.loads(sys.argv[1]))
    for line in sys.stdin:
        gc.collect()
        # What the last training freed goes back, and the peak begins anew (Linux).
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before, clock = _memory("VmRSS"), Clock()
        train(line.strip(), sizes, clock)
        answer = {"seconds": clock.seconds, "rest": before, "peak": _memory("VmHWM")}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _memory(field: str) -> float:
    """Megabytes of one line of the kernel's account of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1000


def as_argument(sizes: Sizes) -> str:
    """The sizes as `serve` reads them."""
    return json.dumps(asdict(sizes))
