"""Do 95 % intervals of sampled attributions hold 95 % of the exact values, where every mask was evaluated?

`python -m benchmarks.generation.coverage FOLDER [--seeds 5]`

FOLDER has the files that `benchmarks.generation.enumeration` writes, one per prompt: the log-probability of every
output token at all 2ⁿ masks. Shapley values and LIME's coefficients are then known exactly, from sums over all masks
that share no code with the explainers. An explainer reads the stored values instead of a network, so it has no
gradients. Every source of every token is one interval. The standard error is over prompts, since intervals of one
prompt are not independent.
"""

import argparse
from math import comb
from pathlib import Path

import numpy as np

import heedful
from heedful.models import Model

SIZES = (34, 64, 100, 256, 1000)
METHODS = {
    "shapley-sampled": ("shapley-sampled", {}),
    "shapley-sampled, design stratified": ("shapley-sampled", {"design": "stratified"}),
    "lime": ("lime", {}),
}


def every_mask(n_units: int) -> np.ndarray:
    """All masks in the order of the files: mask m keeps source s if bit n − 1 − s of m is set."""
    return (np.arange(2**n_units)[:, None] >> np.arange(n_units - 1, -1, -1)) % 2 == 1


def exact_shapley(values: np.ndarray) -> np.ndarray:
    """Shapley values by their definition: the mean gain of a source over all orders, for every column of values."""
    keep = every_mask(int(np.log2(len(values))))
    n_units, size = keep.shape[1], keep.sum(axis=1)
    of_size = 1.0 / np.array([n_units * comb(n_units - 1, k) for k in range(n_units)])
    scores = []
    for unit in range(n_units):
        without = np.flatnonzero(~keep[:, unit])
        with_unit = without + 2 ** (n_units - 1 - unit)
        scores.append(of_size[size[without]] @ (values[with_unit] - values[without]))
    return np.array(scores)


def exact_lime(values: np.ndarray, n_samples: int, kernel_width: float = 25.0, ridge: float = 1.0) -> np.ndarray:
    """LIME's coefficients from the mean mass of n samples: the whole text once, the number removed uniform on 1 … d."""
    keep = every_mask(int(np.log2(len(values))))
    n_units = keep.shape[1]
    gone = n_units - keep.sum(axis=1)
    mass = np.array([(n_samples - 1) / n_units / comb(n_units, k) for k in range(n_units + 1)])
    mass[0] = 1.0
    weight = mass[gone] * np.exp(-((100 * (1 - np.sqrt(keep.mean(axis=1)))) ** 2) / (2 * kernel_width**2))
    share = weight / weight.sum()
    x, y = keep - share @ keep, values - share @ values
    return np.linalg.solve(x.T @ (x * weight[:, None]) + ridge * np.eye(n_units), x.T @ (y * weight[:, None]))


def table_model(name: str, values: np.ndarray) -> tuple[Model, str]:
    """A function that looks up the values of the sources that are present, and a text of all sources."""
    n_units = int(np.log2(len(values)))
    words = [f"{name}source{number}" for number in range(n_units)]
    place = {word: 2 ** (n_units - 1 - number) for number, word in enumerate(words)}

    def read(texts: list[str]) -> np.ndarray:
        return values[[sum(place.get(word, 0) for word in text.split()) for text in texts]]

    return heedful.wrap(read, classes=[f"token {number}" for number in range(values.shape[1])]), " ".join(words)


def judged(file: Path, name: str, n_samples: int, seeds: int) -> tuple[float, float]:
    """For one prompt the share of intervals with the exact value, and the squared error beside that of zeros."""
    values = np.load(file).astype(np.float64)
    model, text = table_model(file.stem, values)
    method, settings = METHODS[name]
    truth = exact_shapley(values) if method == "shapley-sampled" else exact_lime(values, n_samples)
    inside, missed = [], []
    for seed in range(seeds):
        for token in range(values.shape[1]):
            given = {"target": token, "n_samples": n_samples, "seed": seed, "absence": "delete", **settings}
            found = heedful.explain(model, text, method, progress=None, **given)
            assert found.error is not None
            missed.append(found.scores - truth[:, token])
            inside.append(np.abs(missed[-1]) <= found.error + 1e-9)
    return float(np.mean(inside)), float(np.mean(np.square(missed)) / np.mean(truth**2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    files = sorted(asked.folder.glob("*.npy"))
    print(f"{len(files)} prompts, {asked.seeds} seeds; share of exact values in the 95 % intervals ± standard error")
    for name in METHODS:
        for n_samples in SIZES:
            shares, errors = np.array([judged(file, name, n_samples, asked.seeds) for file in files]).T
            spread = shares.std(ddof=1) / np.sqrt(len(shares))
            print(
                f"{name:34} {n_samples:5} masks: {shares.mean():.1%} ± {spread:.1%}, lowest {shares.min():.1%}; "
                f"squared error {errors.mean():.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
