"""Trains dictionaries on activations whose features are known, and measures how many they recover.

    python -m studies.features.known_answers --out runs/known-answers --device cuda --seeds 0 1 2 --ceiling
    python -m studies.features.known_answers --out runs/small --small

The data are SynthSAEBench-16k, or with --small 512 features in 64 dimensions, which a processor trains on in minutes.
Options that are not listed are settings of the kind or of the training, such as --passes 2 or --batch-size 4096; those
that a kind does not have are left out. Every finished training is added to OUT/results.json; the same call again makes
only what is missing. Needs torch, numpy, scipy, jaxtyping and safetensors.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, final

import numpy as np
import torch

from heedful.errors import HeedfulError
from heedful.family import parse_words
from heedful.features.autoencoder import kinds
from heedful.features.card import Card
from heedful.features.fitting import choose
from heedful.features.recovery import measure_ceiling, measure_recovery
from heedful.features.synthetic import SMALL, STANDARD, SyntheticData
from heedful.features.training import ChunkResult, train_on
from heedful.run_folder import write_atomically
from heedful.statistics.intervals import seed_intervals
from heedful.statistics.quantity import Quantity

BOUNDS = {
    "f1": (0.0, 1.0),
    "mcc": (0.0, 1.0),
    "precision": (0.0, 1.0),
    "recall": (0.0, 1.0),
    "uniqueness": (0.0, 1.0),
    "explained_variance": (-inf, 1.0),
    "l0": (0.0, inf),
    "dead_share": (0.0, 1.0),
}
"""The numbers that are shown, and between what each lies."""
PUBLISHED = """\
Published for SynthSAEBench-16k at width 4,096 and L0 25, after 200 million rows (arXiv:2602.14687):
  batchtopk    F1 0.73, MCC 0.76
  matryoshka   F1 0.88, MCC 0.79
Best known F1: 0.97 (the leaderboard of SAELens)"""


@final
@dataclass(frozen=True)
class Size:
    """Which data, and the settings of a training on them that are not given."""

    small: bool = False
    width: int = 4_096
    k: float = 25.0
    rows: int = 40_000_000
    judged: int = 200_000

    def data(self, seed: int, device: str) -> SyntheticData:
        return SyntheticData(SMALL if self.small else STANDARD, seed, device=device)


SIZES = {False: Size(), True: Size(True, 128, 5.6, 1_000_000, 50_000)}


def train_and_measure(
    size: Size, kind: str, seed: int, device: str, settings: Mapping[str, Any], folder: Path | None
) -> dict[str, Any]:
    """Trains a dictionary and measures it; saves it where a folder is given."""
    data, start = size.data(seed, device), perf_counter()
    # The same number of features is active in every row of topk, so its k is whole.
    k = round(size.k) if kind == "topk" else size.k
    training = {"k": k, "n_rows": size.rows, "seed": seed, "device": device, **settings}
    own = {**kinds()[kind].__dataclass_fields__, **_SHARED}
    chosen = {name: value for name, value in training.items() if name in own or not _of_some_kind(name)}
    autoencoder, plan = choose(kind, size.width, data.d_e, chosen)
    n_chunks = -(-plan.n_rows // data.rows_a_chunk)

    def tell(result: ChunkResult) -> None:
        if (result.number + 1) % -(-n_chunks // 10) == 0:
            say(f"  {(result.number + 1) / n_chunks:4.0%} {perf_counter() - start:6.0f} s  {result.summary}")

    card = Card(kind, data=data.about)
    dictionary = train_on(data, autoencoder, size.width, plan, card, finished=tell)
    trained = perf_counter()
    recovery = measure_recovery(dictionary, data, size.judged, seed)
    if folder is not None:
        dictionary.save(folder / f"{kind}-{seed}")
    seconds = {"training": trained - start, "measuring": perf_counter() - trained}
    return {"seed": seed, "seconds": seconds, "training": dictionary.card.settings, "recovery": recovery.as_dict()}


_SHARED = dict.fromkeys(("seed", "device"))


def _of_some_kind(name: str) -> bool:
    """Whether some kind has this setting, so that the others are trained without it."""
    return any(name in kind.__dataclass_fields__ for kind in kinds().values())


def ceiling_of(size: Size, device: str) -> dict[str, Any]:
    """How well linear probes detect as many of the most frequent features."""
    start = perf_counter()
    ceiling = measure_ceiling(size.data(0, device), size.width, size.judged)
    numbers = {name: getattr(ceiling, name)._asdict() for name in ("f1", "precision", "recall")}
    return {"seconds": perf_counter() - start, **numbers}


def line_of(run: Mapping[str, Any]) -> str:
    """The results of one seed."""
    numbers = {name: run["recovery"][name] for name in BOUNDS}
    shown = ", ".join(f"{name} {_value(number):.4g}" for name, number in numbers.items())
    seconds = run["seconds"]
    return (
        f"{run['kind']} seed {run['seed']}: {shown}; "
        f"{seconds['training']:.0f} s of training, {seconds['measuring']:.0f} s of measuring"
    )


def mean_line(runs: Sequence[Mapping[str, Any]]) -> str:
    """The mean over seeds with its 95 % confidence interval, which needs at least two."""
    parts = []
    for name, bounds in BOUNDS.items():
        values = np.array([[_value(run["recovery"][name]) for run in runs]])
        low, high = seed_intervals(values, bounds)
        parts.append(f"{name} {Quantity(float(values.mean()), float(low[0]), float(high[0]))}")
    return f"{runs[0]['kind']}, mean of {len(runs)} seeds: " + ", ".join(parts)


def _value(number: float | Mapping[str, float]) -> float:
    return number["value"] if isinstance(number, Mapping) else number


def say(line: str) -> None:
    print(line, flush=True)


def arguments(given: Sequence[str] | None) -> tuple[argparse.Namespace, dict[str, Any]]:
    parser = argparse.ArgumentParser(
        "python -m studies.features.known_answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add: Any = parser.add_argument
    add("--out", type=Path, required=True, help="folder of the results")
    add("--small", action="store_true", help="512 features in 64 dimensions")
    add("--kind", nargs="+", default=["matryoshka"], choices=sorted(kinds()))
    add("--seeds", nargs="+", type=int, default=[0, 1, 2])
    add("--width", type=int, help="4096, or 128 with --small")
    add("--k", type=float, help="active features per row: 25, or 5.6 with --small")
    add("--rows", type=int, help="rows in training: 40 million, or 1 million with --small")
    add("--judged", type=int, help="rows in measuring: 200,000, or 50,000 with --small")
    add("--lr", type=float, help="the learning rate")
    add("--device", default="cpu")
    add("--ceiling", action="store_true", help="also trains a linear probe for each of the most frequent features")
    add("--save", action="store_true", help="saves the dictionaries in OUT")
    known, rest = parser.parse_known_args(given)
    words, settings = parse_words(rest)
    if words:
        parser.error(f"{words[0]!r} is not an option")
    return known, settings if known.lr is None else {"learning_rate": known.lr, **settings}


def main(given: Sequence[str] | None = None) -> None:
    options, settings = arguments(given)
    stated = {name: getattr(options, name) for name in ("width", "k", "rows", "judged")}
    chosen = {name: value for name, value in stated.items() if value is not None}
    size = Size(**{**asdict(SIZES[options.small]), **chosen})
    path = options.out / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {"runs": [], "ceilings": []}
    on = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device

    def made(name: str, about: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [each for each in results[name] if about.items() <= each.items()]

    def add(name: str, about: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        results[name].append({**about, "device": on, "torch": torch.__version__, **result})
        write_atomically(path, json.dumps(results, indent=1))

    def about_of(kind: str) -> dict[str, Any]:
        return {"size": asdict(size), "kind": kind, "settings": settings}

    for kind in options.kind:
        for seed in options.seeds:
            about = {**about_of(kind), "seed": seed}
            if not made("runs", about):
                folder = options.out if options.save else None
                add("runs", about, train_and_measure(size, kind, seed, options.device, settings, folder))
            say(line_of(made("runs", about)[0]))
    for kind in options.kind:
        say(mean_line([run for seed in options.seeds for run in made("runs", {**about_of(kind), "seed": seed})]))
    if options.ceiling:
        about = {"size": asdict(size)}
        if not made("ceilings", about):
            add("ceilings", about, ceiling_of(size, options.device))
        ceiling = made("ceilings", about)[0]
        numbers = ", ".join(f"{name} {Quantity(**ceiling[name])}" for name in ("f1", "precision", "recall"))
        say(f"linear probes of the {size.width:,} most frequent features: {numbers}; {ceiling['seconds']:.0f} s")
    if not size.small:
        say(PUBLISHED)


if __name__ == "__main__":
    try:
        main()
    except HeedfulError as error:
        raise SystemExit(f"Error: {error}") from None
