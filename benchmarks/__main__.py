"""Every figure of docs/benchmarks.md: both sides in one run, as ratios. `make bench`; `--out FILE` writes the page."""

import argparse
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch
from lime.lime_text import LimeTextExplainer

import heedful
from heedful.models.single_layer import SingleLayer
from tests.straightforward import Straightforward, basic_english

N_WORDS, N_SAMPLES, N_DOCUMENTS, N_STEPS = 100, 5000, 5000, 100


def text_of(model: SingleLayer, n_words: int, seed: int) -> str:
    """Words of middling frequency, a fifth of them repeated."""
    rng = np.random.default_rng(seed)
    words = [model.vocabulary.words[i] for i in rng.integers(50, 20_000, size=n_words * 4 // 5)]
    return " ".join(words + list(rng.choice(words, size=n_words - len(words))))


def spent(action: Callable[[], object], times: int) -> tuple[float, float]:
    """CPU and wall seconds of one call, the mean over several."""
    cpu, wall = process_time(), perf_counter()
    for _ in range(times):
        action()
    return (process_time() - cpu) / times, (perf_counter() - wall) / times


def official_lime(plain: Straightforward, text: str, batch: int) -> None:
    explainer = LimeTextExplainer(random_state=0, split_expression=basic_english)
    explainer.explain_instance(
        text, lambda texts: plain.predict(texts, batch), labels=(1,), num_features=N_WORDS, num_samples=N_SAMPLES
    )


def train_steps(parameters: list[torch.Tensor], forward: Callable[[torch.Tensor], torch.Tensor], fused: bool) -> None:
    rng = torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(parameters, lr=1e-4, fused=fused)
    for _ in range(N_STEPS):
        ids = torch.randint(2, 20_000, (16, 256), generator=rng)
        loss = torch.nn.functional.cross_entropy(forward(ids), torch.randint(0, 2, (16,), generator=rng))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def peak(side: str) -> tuple[float, float]:
    """Megabytes at rest with the model loaded and at the peak of one LIME, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--peak", side], capture_output=True, text=True, check=True
    )
    rest, top = run.stdout.split()
    return float(rest), float(top)


def measure_peak(side: str) -> None:
    model = heedful.load("paper")
    text = text_of(model, N_WORDS, 0)
    plain = Straightforward(model)
    run = {
        "ours": lambda: heedful.explain(model, text, "lime", target=1, unit="type", absence="delete"),
        "theirs": lambda: official_lime(plain, text, N_SAMPLES),
    }[side]
    heedful.explain(model, "a good film", "lime", n_samples=10)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far (Linux)
    rest = status("VmRSS")
    run()
    print(rest, status("VmHWM"))


def status(field: str) -> float:
    """Megabytes of one line of the kernel's account of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1000


def measure() -> list[str]:
    model = heedful.load("paper")
    assert isinstance(model, SingleLayer)
    plain = Straightforward(model)
    rows = []

    def row(what: str, theirs: float, ours: float, unit: str, wanted: str) -> None:
        rows.append(f"| {what} | {theirs:.4g} {unit} | {ours:.4g} {unit} | **{theirs / ours:.1f}×** | {wanted} |")
        print(rows[-1], flush=True)

    text = text_of(model, N_WORDS, 0)
    for absence in ("delete", "replace"):
        settings = {"target": 1, "unit": "type", "absence": absence, "n_samples": N_SAMPLES}
        heedful.explain(model, text, "lime", **settings)
        ours_cpu, ours_wall = spent(lambda settings=settings: heedful.explain(model, text, "lime", **settings), 20)
        if absence == "delete":
            theirs_cpu, theirs_wall = spent(lambda: official_lime(plain, text, 64), 1)
        what = f"LIME, {N_WORDS} words, n = {N_SAMPLES}, ours with absence={absence}, theirs deletes"
        row(f"{what}: CPU time", theirs_cpu, ours_cpu, "s", "≥ 200×" if absence == "delete" else "")
        row(f"{what}: wall time", theirs_wall, ours_wall, "s", "")

    rng = np.random.default_rng(0)
    ids = [np.append(0, rng.integers(2, 20_000, size=rng.integers(60, 255))) for _ in range(N_DOCUMENTS)]
    padded = model.padded(ids)

    def their_forward() -> None:
        with torch.no_grad():
            for chunk in padded.split(64):
                plain(chunk)

    model.predict_ids(ids[:500])
    theirs_cpu, theirs_wall = spent(their_forward, 1)
    ours_cpu, ours_wall = spent(lambda: model.predict_ids(ids), 3)
    row(f"forward of {N_DOCUMENTS} documents: CPU time", theirs_cpu, ours_cpu, "s", "≥ 10×")
    row(f"forward of {N_DOCUMENTS} documents: wall time", theirs_wall, ours_wall, "s", "≥ 10×")

    network = model.network.float()
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    theirs_cpu, theirs_wall = spent(lambda: train_steps(list(plain.parameters()), plain, False), 1)
    ours_cpu, ours_wall = spent(lambda: train_steps(weights, lambda x: network(network.embed(x)), True), 1)
    steps = 1250 / N_STEPS
    what = f"training epoch of 20,000 reviews, from {N_STEPS} steps"
    row(f"{what}: CPU time", theirs_cpu * steps, ours_cpu * steps, "s", "≥ 3×")
    row(f"{what}: wall time", theirs_wall * steps, ours_wall * steps, "s", "≥ 3×")

    (ours_rest, ours_top), (theirs_rest, theirs_top) = peak("ours"), peak("theirs")
    what = f"LIME, {N_WORDS} words, n = {N_SAMPLES}: peak memory"
    row(f"{what} beyond the loaded model", theirs_top - theirs_rest, ours_top - ours_rest, "MB", "ours < 300 MB")
    row(f"{what} of the whole process", theirs_top, ours_top, "MB", "")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the table to this Markdown page")
    parser.add_argument("--peak", choices=["ours", "theirs"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        measure_peak(options.peak)
        return
    rows = measure()
    if options.out:
        options.out.write_text(
            "# Benchmarks\n\nSpeed and memory of heedful compared with straightforward code, on the bundled model.\n\n"
            "Command: `make bench` (`python -m benchmarks --out docs/benchmarks.md` writes this page). "
            'Both are measured in one run. "Theirs" is the official `lime` 0.2.0.1 on the paper\'s model, written head '
            "by head with whole T×T matrices (`tests/straightforward.py`).\n\n"
            "Whether each probe of attention tells a planted case from its opposite: `make bench-probes`, which prints "
            "a table over 100 random seeds.\n\n"
            f"Machine of this run: {torch.get_num_threads()} threads, Python {platform.python_version()}, "
            f"torch {torch.__version__}.\n\n"
            "| what | theirs | ours | ratio | required |\n| --- | --- | --- | --- | --- |\n" + "\n".join(rows) + "\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
