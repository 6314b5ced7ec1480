"""The linear datamodelling score after a number of masks: our methods and ContextCite, on enumerated prompts.

    python -m benchmarks.generation.datamodelling CASES.json FILE.npy… [--seeds 5] [--masks 16 24 32 48 64]

A file holds [mask × output token] log-probabilities of one case, or [case × mask × output token] of several, in the
order of the cases. No model is loaded: a function looks the values up, so every method sees the same numbers. What is
explained is log p of the whole output. The score is Spearman's correlation on 512 masks, the same for all methods.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import heedful
from benchmarks.generation.cases import read_cases
from benchmarks.generation.context_cite import N_ABLATIONS, context_cite, datamodelling_score
from benchmarks.generation.enumeration import all_masks
from benchmarks.generation.exact_values import ceiling
from heedful.errors import TooFewSamples
from heedful.statistics.intervals import mean_intervals

METHODS = ("context-cite", "banzhaf-sampled", "shapley-sampled", "lime", "leave-one-out")
N_HELD_OUT = 512


def read_values(files: Sequence[Path]) -> list[np.ndarray]:
    """[mask] log p of the whole output, for every case."""
    tables = [np.load(file) for file in files]
    cases = [case for table in tables for case in (table if table.ndim == 3 else table[None])]
    return [case.astype(np.float64).sum(axis=1) for case in cases]


class Game:
    """One case: the value of every mask over its sources, as a function of texts of one word per source."""

    def __init__(self, number: int, values: np.ndarray, n_output: int) -> None:
        self.values, self.n_output = values, n_output
        self.n_sources = values.size.bit_length() - 1
        self.place = 1 << np.arange(self.n_sources - 1, -1, -1)
        self.words = [f"case{number}source{source}" for source in range(self.n_sources)]
        self.model = heedful.wrap(self.look_up)

    def look_up(self, texts: list[str]) -> np.ndarray:
        kept = np.array([[word in text.split() for word in self.words] for text in texts])
        return self.values[kept @ self.place][:, None]

    def weights(self, method: str, n_masks: int, seed: int) -> np.ndarray:
        """The surrogate's weights; NaN if the method needs more masks."""
        if method == "context-cite":
            evaluate = lambda keep: self.values[keep @ self.place]  # noqa: E731
            return context_cite(evaluate, self.n_sources, self.n_output, seed, n_masks)[0]
        settings: dict[str, Any] = {} if method == "leave-one-out" else {"n_samples": n_masks, "seed": seed}
        try:
            explanation = heedful.explain(self.model, " ".join(self.words), method, target=0, **settings)
        except TooFewSamples:
            return np.full(self.n_sources, np.nan)
        assert method == "leave-one-out" or explanation.facts["masks"] <= n_masks
        return explanation.scores


def score_of(game: Game, held: np.ndarray, method: str, n_masks: int, n_seeds: int) -> float:
    """The mean score over seeds."""
    masks, marks = all_masks(game.n_sources)[held], []
    for seed in range(n_seeds):
        weights = game.weights(method, n_masks, seed)
        marks.append(np.nan if np.isnan(weights).any() else datamodelling_score(weights, masks, game.values[held]))
    return float(np.mean(marks))


def written(scores: np.ndarray) -> str:
    """Mean and 95 % interval over cases."""
    if np.isnan(scores).any():
        return "–"
    low, high = mean_intervals(scores[None])
    return f"{scores.mean():.3f} [{low[0]:.3f}, {high[0]:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--masks", type=int, nargs="+", default=[16, 24, 32, 48, N_ABLATIONS])
    asked = parser.parse_args()
    values = read_values(asked.files)
    cases = read_cases(asked.cases)[: len(values)]
    games = [Game(n, v, len(c.output)) for n, (c, v) in enumerate(zip(cases, values, strict=True))]
    rng = np.random.default_rng(12345)
    held = [rng.choice(game.values.size, N_HELD_OUT, replace=False) for game in games]
    tokens = np.mean([len(case.ids) + len(case.output) - 1 for case in cases])
    best = written(np.array([ceiling(game.values) for game in games]))
    print(f"{len(games)} cases, {tokens:.0f} tokens a mask, {asked.seeds} seeds; ceiling {best}")
    goal = None
    for method in METHODS:
        needed = None
        for n_masks in [13] if method == "leave-one-out" else asked.masks:
            n_seeds = 1 if method == "leave-one-out" else asked.seeds
            pairs = zip(games, held, strict=True)
            scores = np.array([score_of(game, rows, method, n_masks, n_seeds) for game, rows in pairs])
            print(f"  {method:16} {n_masks:4} masks  {written(scores)}", flush=True)
            if method == "context-cite" and n_masks == N_ABLATIONS:
                goal = scores
            if goal is not None and needed is None and scores.mean() >= goal.mean():
                needed = n_masks
                print(
                    f"    reaches ContextCite's {N_ABLATIONS} masks: {n_masks * tokens:,.0f} token-forwards", flush=True
                )
            if goal is not None and n_masks == N_ABLATIONS and method != "context-cite":
                print(f"    less ContextCite's, paired: {written(scores - goal)}", flush=True)


if __name__ == "__main__":
    main()
