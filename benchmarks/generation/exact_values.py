"""What all 2ⁿ masks of n sources give by brute force: Shapley values, best linear surrogate, ceiling of the score."""

from math import comb

import numpy as np
from scipy.stats import rankdata

from benchmarks.generation.context_cite import datamodelling_score
from benchmarks.generation.enumeration import all_masks


def exact_shapley(values: np.ndarray) -> np.ndarray:
    """[output × source] the Shapley values of a table mask × output: Σ_S |S|! (n − 1 − |S|)! / n! (f(S ∪ j) − f(S))."""
    n = len(values).bit_length() - 1
    masks = all_masks(n)
    sizes = masks.sum(axis=1)
    weights = np.array([1 / (n * comb(n - 1, size)) for size in range(n)])
    table = np.zeros((values.shape[1], n))
    for source in range(n):
        without = np.flatnonzero(~masks[:, source])
        gain = values[without | 1 << (n - 1 - source)] - values[without]
        table[:, source] = weights[sizes[without]] @ gain
    return table


def best_linear(values: np.ndarray) -> np.ndarray:
    """The least-squares linear surrogate over all masks: the mean with a source less that without."""
    masks = all_masks(len(values).bit_length() - 1)
    return np.array([values[keep].mean() - values[~keep].mean() for keep in masks.T])


def ceiling(values: np.ndarray) -> float:
    """The datamodelling score of the surrogate fitted to the ranks of the values: the score compares ranks."""
    return datamodelling_score(best_linear(rankdata(values)), all_masks(len(values).bit_length() - 1), values)
