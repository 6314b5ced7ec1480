"""Which units go."""

import hashlib
from dataclasses import dataclass
from itertools import combinations
from math import comb, log2
from typing import Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.document import Document
from heedful.errors import BadInput

Design = Literal["independent", "paired", "stratified"]
"""How masks are drawn: each for itself; each with its complement; or with its complement and sizes spread evenly."""


@final
@dataclass(frozen=True)
class Draws:
    """Masks as kept units, and how much of the law each stands for.

    The first `n_certain` masks are not drawn and carry no chance. The others come in pairs of complements, ordered by
    stratum, if `paired`.
    """

    keep: Bool[np.ndarray, "mask unit"]
    mass: Float[np.ndarray, "mask"]
    n_certain: int
    paired: bool

    def and_more(self, more: "Draws") -> "Draws":
        """These draws and those of another round; what is certain is counted once, with the mass of both."""
        n = self.n_certain
        certain = self.mass[:n] + more.mass[:n]
        # The whole document stands for itself alone, however many rounds there are.
        certain[0] = self.mass[0]
        keep = np.concatenate([self.keep, more.keep[n:]])
        return Draws(keep, np.concatenate([certain, self.mass[n:], more.mass[n:]]), n, self.paired)

    def shuffled(self) -> Int[np.ndarray, "mask"]:
        """An order to ask in: what is certain first, then the draws, pairs together, every beginning of all sizes.

        Draws are sorted by stratum, so they are taken in the order of van der Corput: every other, then those between.
        """
        n, each = self.n_certain, 2 if self.paired else 1
        blocks = np.arange(n, len(self.keep)).reshape(-1, each)
        number, turned = np.arange(len(blocks)), np.zeros(len(blocks), dtype=np.int64)
        for _ in range(max(1, len(blocks).bit_length())):
            number, turned = number >> 1, (turned << 1) | (number & 1)
        return np.concatenate([np.arange(n), blocks[np.argsort(turned, kind="stable")].ravel()])

    def usable(self, evaluated: Bool[np.ndarray, "mask"]) -> Bool[np.ndarray, "mask"]:
        """Of the masks that were evaluated those that count: of a pair both or none."""
        n = self.n_certain
        if not self.paired:
            return evaluated
        both = evaluated[n:].reshape(-1, 2).all(axis=1).repeat(2)
        return np.concatenate([evaluated[:n], both])

    def only(self, usable: Bool[np.ndarray, "mask"]) -> "Draws":
        """A part of the draws, which stands for all of them."""
        n = self.n_certain
        share = self.mass[n:].sum() / max(self.mass[n:][usable[n:]].sum(), 1e-300)
        mass = np.concatenate([self.mass[:n], self.mass[n:] * share])
        return Draws(self.keep[usable], mass[usable], n, self.paired)


def generator(seed: int, document: Document) -> np.random.Generator:
    """A source of chance that depends on the seed and the document alone."""
    if seed < 0:
        raise BadInput(f"A seed is a whole number from 0; {seed} was given.")
    content = (
        document.text.encode("utf-8", "surrogatepass") if document.picture is None else document.picture.rgb.tobytes()
    )
    digest = hashlib.sha256(content).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])


def lime_masks(n_units: int, n_samples: int, rng: np.random.Generator) -> Bool[np.ndarray, "mask unit"]:
    """LIME's perturbed samples as kept units: everything kept first, then n − 1 draws.

    A draw removes s units, s uniform on 1 … d, the set uniform among those of that size (Section 5.1; the official
    package draws the same law).
    """
    sizes = rng.integers(1, n_units + 1, size=n_samples - 1)
    return np.concatenate([np.ones((1, n_units), dtype=bool), ~subsets(n_units, sizes, rng)])


@final
@dataclass(frozen=True)
class Law:
    """How much mass each number of removed units has, 0 … d; sets of one size share it equally."""

    of_size: Float[np.ndarray, "size"]

    @staticmethod
    def lime(n_units: int, n_samples: int) -> "Law":
        """The whole document with mass 1, and n − 1 samples with sizes uniform on 1 … d (Section 5.1)."""
        return Law(np.concatenate([[1.0], np.full(n_units, (n_samples - 1) / n_units)]))

    @staticmethod
    def shapley(n_units: int, n_samples: int) -> "Law":
        """n samples with mass ∝ 1/(s(d−s)) (Lundberg & Lee, 2017); nothing and everything are no points of the fit."""
        s = np.arange(1, n_units)
        inner = 1 / (s * (n_units - s))
        return Law(np.concatenate([[0.0], n_samples * inner / inner.sum(), [0.0]]))

    def listed(self) -> int:
        """Up to which size from either end every set can be asked once, for no more than its samples would cost."""
        d = len(self.of_size) - 1
        if d <= log2(self.of_size.sum()):
            return d // 2
        size = 0
        while 2 * size + 2 <= d and min(self.of_size[size + 1], self.of_size[d - size - 1]) >= comb(d, size + 1):
            size += 1
        # At least five pairs are drawn, or their spread would not be known.
        while size and self.of_size.sum() - self._n_listed(size) < 10:
            size -= 1
        return size

    def _n_listed(self, size: int) -> int:
        d = len(self.of_size) - 1
        return 2 + 2 * sum(comb(d, smaller) for smaller in range(1, size + 1))


def lime_draws(n_units: int, n_samples: int, rng: np.random.Generator) -> Draws:
    """What the official package draws: everything kept, then n − 1 masks, each for itself."""
    return Draws(lime_masks(n_units, n_samples, rng), np.ones(n_samples), 1, paired=False)


def spread_draws(law: Law, listed: int, n_samples: int, design: Design, rng: np.random.Generator) -> Draws:
    """Everything, nothing, all sets of up to `listed` kept or removed units, and draws for the sizes between.

    What is asked for certain has its exact mass, so nothing but the sizes between is left to chance. Under "paired" and
    "stratified" every draw comes with its complement; for that the two must be alike in the law, or the law in between
    be flat, as LIME's is.
    """
    d = len(law.of_size) - 1
    certain = [np.array([[True], [False]]).repeat(d, axis=1)]
    for size in range(1, listed + 1):
        rows = np.zeros((comb(d, size), d), dtype=bool)
        chosen = np.array(list(combinations(range(d), size)))
        np.put_along_axis(rows, chosen, values=True, axis=1)
        # The size in the middle is its own other end.
        certain += [rows] if 2 * size == d else [~rows, rows]
    keep = np.concatenate(certain)
    gone = d - keep.sum(axis=1)
    mass = law.of_size[gone] / np.bincount(gone, minlength=d + 1)[gone]
    inner = law.of_size[listed + 1 : d - listed]
    if not len(inner):
        return Draws(keep, mass, len(keep), paired=False)
    between = _between(inner, listed, max(10, n_samples - len(keep)), design, rng, d)
    share = np.full(len(between), inner.sum() / len(between))
    drawn = np.concatenate([keep, between]), np.concatenate([mass, share])
    return Draws(*drawn, len(keep), paired=design != "independent")


def _between(
    inner: Float[np.ndarray, "size"],
    listed: int,
    n_samples: int,
    design: Design,
    rng: np.random.Generator,
    d: int,
) -> Bool[np.ndarray, "mask unit"]:
    """Drawn masks whose sizes follow the inner part of the law."""
    n_places = n_samples if design == "independent" else n_samples // 2
    place = rng.random(n_places)
    if design == "stratified":
        place = (np.arange(n_places) + place) / n_places
    steps = np.cumsum(inner) / inner.sum()
    sizes = listed + 1 + np.minimum(np.searchsorted(steps, place), len(inner) - 1)
    gone = subsets(d, sizes, rng)
    return ~gone if design == "independent" else np.stack([~gone, gone], axis=1).reshape(-1, d)


def subsets(n: int, sizes: Int[np.ndarray, "mask"], rng: np.random.Generator) -> Bool[np.ndarray, "mask unit"]:
    """A uniform set of each size, marked."""
    # The s smallest of n random keys are a uniform subset; a tie of two 64-bit keys will not be seen.
    keys = rng.integers(0, 2**64, size=(len(sizes), n), dtype=np.uint64)
    largest = np.take_along_axis(np.sort(keys, axis=1), sizes[:, None] - 1, axis=1)
    return keys <= largest


def first(order: Int[np.ndarray, "unit"], counts: Int[np.ndarray, "step"]) -> Bool[np.ndarray, "step unit"]:
    """For every count the units that come first."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place < counts[:, None]


def counts_of(shares: Float[np.ndarray, "step"], n_units: int) -> Int[np.ndarray, "step"]:
    """How many units a share is: rounded up, at least one."""
    return np.maximum(1, np.ceil(shares * n_units - 1e-9)).astype(np.int64)
