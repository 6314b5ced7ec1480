"""Which masks a linear surrogate needs: orthogonal designs beside random masks, by the linear datamodelling score.

    python -m benchmarks.generation.designs CASES.json FOLDER [--absence replace] [--seeds 5]

The rows of a Hadamard matrix, its columns permuted and their signs drawn, are masks on which the sources are
orthogonal. With their complements, no coefficient is biased by an interaction of two sources (Box & Wilson's
resolution IV).
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.linalg import hadamard

from benchmarks.generation.cases import read_cases
from benchmarks.generation.context_cite import context_cite, datamodelling_score
from benchmarks.generation.enumeration import all_masks
from benchmarks.generation.exact_values import ceiling
from benchmarks.generation.known import N_HELD_OUT, read_tables


def hadamard_matrix(order: int) -> np.ndarray:
    """A Hadamard matrix: Sylvester's for powers of two, Paley's for 12 and 20, and 24 as their product."""
    if order == 24:
        return np.kron(hadamard(2), hadamard_matrix(12))
    if order not in (12, 20):
        return hadamard(order)
    q = order - 1
    squares = {n * n % q for n in range(1, q)}
    sign = np.array([0 if n == 0 else 1 if n in squares else -1 for n in range(q)])
    matrix = np.eye(order, dtype=int)
    matrix[1:, 1:] += sign[(np.arange(q)[:, None] - np.arange(q)) % q]
    matrix[0, 1:] += 1
    matrix[1:, 0] -= 1
    return matrix


def orthogonal_masks(n_masks: int, n_sources: int, rng: np.random.Generator) -> np.ndarray:
    """[mask × source] the rows of a Hadamard matrix of half that order, and their complements."""
    columns = rng.permutation(n_masks // 2)[:n_sources]
    rows = hadamard_matrix(n_masks // 2)[:, columns] * rng.choice([-1, 1], n_sources)
    return np.concatenate([rows, -rows]) > 0


def least_squares(masks: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The coefficients of the sources, with an intercept."""
    return np.linalg.lstsq(np.column_stack([np.ones(len(values)), masks]), values, rcond=None)[0][1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--absence", default="replace")
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    tables, cases = read_tables(asked.folder, asked.cases.stem, asked.absence), read_cases(asked.cases)
    rng, marks = np.random.default_rng(12345), dict[str, list[float]]()
    for number, table in tables.items():
        values, n = table.astype(np.float64).sum(axis=1), cases[number].n_sources
        place = 1 << np.arange(n - 1, -1, -1)
        held = rng.choice(len(values), N_HELD_OUT, replace=False)
        masks = all_masks(n)[held]
        marks.setdefault("ceiling", []).append(ceiling(values))
        for seed in range(asked.seeds):
            for n_masks in (24, 32, 40, 48, 64):
                drawn = orthogonal_masks(n_masks, n, np.random.default_rng(seed))
                weights = least_squares(drawn, values[drawn @ place])
                score = datamodelling_score(weights, masks, values[held])
                marks.setdefault(f"Hadamard and complements, {n_masks}", []).append(score)
                weights, _ = context_cite(
                    lambda keep, values=values, place=place: values[keep @ place], n, table.shape[1], seed, n_masks
                )
                score = datamodelling_score(weights, masks, values[held])
                marks.setdefault(f"ContextCite, {n_masks}", []).append(score)
    print(f"{len(tables)} cases of {asked.cases.stem}, absence {asked.absence}")
    for name, scores in sorted(marks.items()):
        print(f"  {name:34}{np.mean(scores):.3f}")


if __name__ == "__main__":
    main()
