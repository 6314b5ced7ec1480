"""Attribution of every token that a model wrote: ours beside Captum's and Inseq's, and what a mask costs, in one run.

    python -m benchmarks.generation MODEL [--inseq PYTHON]

`--inseq` is the Python of an environment with Inseq, which may be another than this one. Each line is the CPU time of
one thread; the two sides take turns. Nothing is taken from an earlier run.
"""

import argparse
import json
import subprocess
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np
import torch

from benchmarks.generation import captum_side, ours
from benchmarks.generation.setting import Setting, word_setting

N_PERMUTATIONS = 5
READINGS: tuple[tuple[captum_side.Reading, float | None], ...] = (("whole", None), ("uncached", 20.0), ("cached", 20.0))
Side = Callable[[], tuple[float, np.ndarray]]


def timed(run: Callable[[], np.ndarray]) -> Side:
    """A side that measures its own CPU seconds."""

    def measure() -> tuple[float, np.ndarray]:
        start = process_time()
        table = run()
        return process_time() - start, table

    return measure


def beside(name: str, mine: Side, theirs: Side, n_turns: int, bar: float | None) -> None:
    """Both sides in turn: medians, their ratio, and how far the tables differ."""
    seconds: tuple[list[float], list[float]] = ([], [])
    tables = [np.zeros(0), np.zeros(0)]
    for turn in range(n_turns + 1):
        for which, side in enumerate((mine, theirs)):
            if turn or which == 0 or n_turns > 1:
                spent, tables[which] = side()
                if turn:
                    seconds[which].append(spent)
    own, other = median(seconds[0]), median(seconds[1])
    verdict = "" if bar is None else f"  (at least {bar:.3g}×: {'met' if other / own >= bar else 'MISSED'})"
    apart = np.abs(tables[0] - tables[1]).max() / max(float(np.abs(tables[1]).max()), 1e-300)
    differ = "" if not tables[1].any() else f"  tables differ by {apart:.0e}"
    print(f"  {name:50}{1000 * own:9.0f} ms {1000 * other:9.0f} ms {other / own:7.2f}×{verdict}{differ}", flush=True)


def inseq_side(python: str, model: str) -> Side:
    """Inseq in a process of its own, which measures its own CPU seconds."""
    command = [python, "-m", "benchmarks.generation.inseq_side", model]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    to, back = process.stdin, process.stdout

    def measure() -> tuple[float, np.ndarray]:
        to.write("\n")
        to.flush()
        record = json.loads(back.readline())
        return record["seconds"], np.array(record["table"])

    return measure


def leave_one_out(setting: Setting) -> None:
    """Ours beside Captum's three ways of reading."""
    model = ours.load(setting)
    mine = timed(lambda: ours.leave_one_out(model, setting))
    for reading, bar in READINGS:
        run = timed(lambda reading=reading: captum_side.leave_one_out(setting, reading))
        beside(f"leave-one-out, Captum {reading}", mine, run, 5 if reading == "whole" else 1, bar)


def shapley(setting: Setting) -> None:
    """Ours beside Captum's, with as many masks."""
    model, n_masks = ours.load(setting), N_PERMUTATIONS * setting.n_sources + 1
    mine = timed(lambda: ours.shapley(model, setting, N_PERMUTATIONS))
    for reading, bar in READINGS:
        run = timed(lambda reading=reading: captum_side.shapley(setting, N_PERMUTATIONS, reading))
        beside(f"Shapley, {n_masks} masks, Captum {reading}", mine, run, 3 if reading == "whole" else 1, bar)


def gradient(setting: Setting, folder: str, inseq: str | None) -> None:
    """Ours beside Captum's and, in a process of its own, Inseq's."""
    model = ours.load(setting)
    mine = timed(lambda: ours.gradient_x_input(model, setting))
    beside("gradient × input, Captum", mine, timed(lambda: captum_side.gradient_x_input(setting)), 5, None)
    if inseq:
        beside("gradient × input, Inseq", mine, inseq_side(inseq, folder), 5, 5.0)


def mask_cost(setting: Setting, n_masks: int) -> None:
    """Our evaluation of random masks beside bare forwards of as many, in batches of the same size."""
    masked = ours.Masked(ours.load(setting), setting)
    keep = np.random.default_rng(0).random((n_masks, setting.n_sources)) < 0.5
    output = torch.tensor(setting.output)
    rows = torch.cat([torch.from_numpy(setting.masked_ids(keep)), output.expand(n_masks, -1)], dim=1)

    def bare() -> np.ndarray:
        values = []
        with torch.inference_mode():
            for some in rows.split(masked.at_once):
                call = {"input_ids": some[:, :-1], "use_cache": False, "logits_to_keep": len(output)}
                logits = setting.network(**call).logits
                values.append(logits.log_softmax(-1).gather(2, output.expand(len(some), -1)[..., None])[..., 0])
        return torch.cat(values).numpy()

    def forward() -> np.ndarray:
        with torch.inference_mode():
            for some in rows.split(masked.at_once):
                setting.network(input_ids=some[:, :-1], use_cache=False, logits_to_keep=len(output))
        return np.zeros((n_masks, len(output)))

    print(f"{n_masks} masks, {masked.at_once} at once; ours, bare forwards, their ratio (at least 1 / 1.15 = 0.87)")
    mine = timed(lambda: masked(keep))
    beside("masks, bare forwards without log-probabilities", mine, timed(forward), 5, 1 / 1.15)
    beside("masks, bare forwards with log-probabilities", mine, timed(bare), 5, None)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--inseq", help="the Python of an environment with Inseq")
    parser.add_argument("--masks", type=int, default=256)
    parser.add_argument("--only", choices=["leave-one-out", "shapley", "gradient", "mask"], action="append")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    setting = word_setting(asked.model)
    print(
        f"{len(setting.output)} output tokens, {setting.n_sources} sources, CPU time of one thread: ours, theirs, ratio"
    )
    parts: dict[str, Callable[[], None]] = {
        "mask": lambda: mask_cost(setting, asked.masks),
        "gradient": lambda: gradient(setting, asked.model, asked.inseq),
        "leave-one-out": lambda: leave_one_out(setting),
        "shapley": lambda: shapley(setting),
    }
    for name in asked.only or parts:
        parts[name]()


if __name__ == "__main__":
    main()
