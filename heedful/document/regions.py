"""Regions of an image: neighbouring patches of similar colour."""

from math import sqrt

import numpy as np
from jaxtyping import Int, UInt8


def regions(rgb: UInt8[np.ndarray, "height width 3"], grid: tuple[int, int]) -> Int[np.ndarray, "patch"]:
    """The region of each patch, numbered in reading order; about √patches of them, at least four.

    Neighbours whose union raises the variance of colours least are merged (Ward, 1963) until so few are left. The
    result depends on the image alone: there is no random generator and no setting.
    """
    rows, columns = grid
    n_patches = rows * columns
    colour = [
        [float(c) for c in patch.mean(axis=(0, 1))]
        for band in np.array_split(rgb.astype(np.float64), rows)
        for patch in np.array_split(band, columns, axis=1)
    ]
    size = [1] * n_patches
    beside: list[set[int]] = [set() for _ in range(n_patches)]
    for patch in range(n_patches):
        row, column = divmod(patch, columns)
        for other in ((patch + 1,) if column + 1 < columns else ()) + ((patch + columns,) if row + 1 < rows else ()):
            beside[patch].add(other)
            beside[other].add(patch)
    owner, alive = np.arange(n_patches), set(range(n_patches))
    while len(alive) > max(4, round(sqrt(n_patches))):
        kept, merged = min(
            ((a, b) for a in alive for b in beside[a] if a < b),
            key=lambda pair: (_rise_of_variance(colour, size, *pair), pair),
        )
        total = size[kept] + size[merged]
        mixed = zip(colour[kept], colour[merged], strict=True)
        colour[kept] = [(x * size[kept] + y * size[merged]) / total for x, y in mixed]
        size[kept] = total
        owner[owner == merged] = kept
        alive.discard(merged)
        for other in beside[merged] - {kept}:
            beside[other].discard(merged)
            beside[other].add(kept)
            beside[kept].add(other)
        beside[kept].discard(merged)
    _, first, region = np.unique(owner, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[region]


def _rise_of_variance(colour: list[list[float]], size: list[int], kept: int, merged: int) -> float:
    distance = sum((x - y) ** 2 for x, y in zip(colour[kept], colour[merged], strict=True))
    return distance * size[kept] * size[merged] / (size[kept] + size[merged])
