"""Which units go."""

import hashlib

import numpy as np
from jaxtyping import Bool, Int

from heedful.document import Document
from heedful.errors import BadInput


def generator(seed: int, document: Document) -> np.random.Generator:
    """A source of chance that depends on the seed and the document alone."""
    if seed < 0:
        raise BadInput(f"A seed is a whole number from 0; {seed} was given.")
    digest = hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])


def lime_masks(n_units: int, n_samples: int, chance: np.random.Generator) -> Bool[np.ndarray, "mask unit"]:
    """LIME's perturbed samples as kept units: everything kept first, then n − 1 draws.

    A draw removes s units, s uniform on 1 … d, the set uniform among those of that size (Section 5.1; the official
    package draws the same law).
    """
    sizes = chance.integers(1, n_units + 1, size=n_samples - 1)
    return np.concatenate([np.ones((1, n_units), dtype=bool), ~_subsets(n_units, sizes, chance)])


def _subsets(n: int, sizes: Int[np.ndarray, "mask"], chance: np.random.Generator) -> Bool[np.ndarray, "mask unit"]:
    # The s smallest of n random keys are a uniform subset; a tie of two 64-bit keys will not be seen.
    keys = chance.integers(0, 2**64, size=(len(sizes), n), dtype=np.uint64)
    largest = np.take_along_axis(np.sort(keys, axis=1), sizes[:, None] - 1, axis=1)
    return keys <= largest
