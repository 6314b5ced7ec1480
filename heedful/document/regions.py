"""Patches of a picture that belong together by their colour."""

from math import sqrt

import numpy as np
from jaxtyping import Int, UInt8


def regions(rgb: UInt8[np.ndarray, "height width 3"], grid: tuple[int, int]) -> Int[np.ndarray, "patch"]:
    """The region of each patch, numbered in reading order; about √patches of them, at least four.

    Neighbours are joined whose union raises the spread of colours least (Ward, 1963), until that few are left: the
    same picture always falls apart in the same way, with no chance and no setting.
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
        one, two = min(
            ((a, b) for a in alive for b in beside[a] if a < b),
            key=lambda pair: (_raised(colour, size, *pair), pair),
        )
        total = size[one] + size[two]
        mixed = zip(colour[one], colour[two], strict=True)
        colour[one] = [(x * size[one] + y * size[two]) / total for x, y in mixed]
        size[one] = total
        owner[owner == two] = one
        alive.discard(two)
        for other in beside[two] - {one}:
            beside[other].discard(two)
            beside[other].add(one)
            beside[one].add(other)
        beside[one].discard(two)
    _, first, found = np.unique(owner, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[found]


def _raised(colour: list[list[float]], size: list[int], one: int, two: int) -> float:
    apart = sum((x - y) ** 2 for x, y in zip(colour[one], colour[two], strict=True))
    return apart * size[one] * size[two] / (size[one] + size[two])
