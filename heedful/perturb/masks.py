"""Random and exhaustive masks: which units of a document are kept."""

import hashlib
from dataclasses import dataclass
from itertools import combinations
from math import comb, log2
from typing import Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.document import Document
from heedful.family import check_seed

Design = Literal["independent", "paired", "stratified"]
"""How masks are drawn: independently; each with its complement; or with its complement and stratified sizes."""


@final
@dataclass(frozen=True)
class Draws:
    """Masks as kept units, and the probability mass that each represents.

    The first `n_certain` masks are not random. If `paired`, the others are pairs of complements, ordered by stratum.
    """

    keep: Bool[np.ndarray, "mask unit"]
    mass: Float[np.ndarray, "mask"]
    n_certain: int
    paired: bool

    def and_more(self, more: "Draws") -> "Draws":
        """These draws and those of another round; certain masks are counted once, with the mass of both."""
        n = self.n_certain
        certain = self.mass[:n] + more.mass[:n]
        # The whole document keeps its mass, however many rounds there are.
        certain[:1] = self.mass[:1]
        keep = np.concatenate([self.keep, more.keep[n:]])
        return Draws(keep, np.concatenate([certain, self.mass[n:], more.mass[n:]]), n, self.paired)

    def shuffled(self) -> Int[np.ndarray, "mask"]:
        """An order of evaluation whose every beginning has masks of all sizes: certain masks first, pairs together.

        Draws are sorted by stratum and are taken in van der Corput's order: every other, then those between.
        """
        n, each = self.n_certain, 2 if self.paired else 1
        blocks = np.arange(n, len(self.keep)).reshape(-1, each)
        number, turned = np.arange(len(blocks)), np.zeros(len(blocks), dtype=np.int64)
        for _ in range(max(1, len(blocks).bit_length())):
            number, turned = number >> 1, (turned << 1) | (number & 1)
        return np.concatenate([np.arange(n), blocks[np.argsort(turned, kind="stable")].ravel()])

    def usable(self, evaluated: Bool[np.ndarray, "mask"]) -> Bool[np.ndarray, "mask"]:
        """The evaluated masks that can be used: both masks of a pair, or neither."""
        n = self.n_certain
        if not self.paired:
            return evaluated
        both = evaluated[n:].reshape(-1, 2).all(axis=1).repeat(2)
        return np.concatenate([evaluated[:n], both])

    def only(self, usable: Bool[np.ndarray, "mask"]) -> "Draws":
        """A part of the draws, rescaled to the mass of all."""
        n = self.n_certain
        share = self.mass[n:].sum() / max(self.mass[n:][usable[n:]].sum(), 1e-300)
        mass = np.concatenate([self.mass[:n], self.mass[n:] * share])
        return Draws(self.keep[usable], mass[usable], n, self.paired)


def generator(seed: int, document: Document) -> np.random.Generator:
    """A random generator that depends on the seed and the document alone."""
    check_seed(seed)
    content = (
        document.text.encode("utf-8", "surrogatepass") if document.picture is None else document.picture.rgb.tobytes()
    )
    digest = hashlib.sha256(content).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])


def lime_masks(n_units: int, n_samples: int, rng: np.random.Generator) -> Bool[np.ndarray, "mask unit"]:
    """LIME's samples as kept units: everything kept first, then n − 1 draws.

    A draw removes s units, s uniform on 1 … d, the set uniform among those of that size (Section 5.1, as in the
    official package).
    """
    sizes = rng.integers(1, n_units + 1, size=n_samples - 1)
    return np.concatenate([np.ones((1, n_units), dtype=bool), ~subsets(n_units, sizes, rng)])


@final
@dataclass(frozen=True)
class Law:
    """The mass of each number of removed units, 0 … d; sets of one size share it equally."""

    of_size: Float[np.ndarray, "size"]

    @staticmethod
    def lime(n_units: int, n_samples: int) -> "Law":
        """The whole document with mass 1, and n − 1 samples with sizes uniform on 1 … d (Section 5.1)."""
        return Law(np.concatenate([[1.0], np.full(n_units, (n_samples - 1) / n_units)]))

    @staticmethod
    def shapley(n_units: int, n_samples: int) -> "Law":
        """n samples with mass ∝ 1/(s(d−s)) (Lundberg & Lee, 2017); both ends are excluded."""
        s = np.arange(1, n_units)
        inner = 1 / (s * (n_units - s))
        return Law(np.concatenate([[0.0], n_samples * inner / inner.sum(), [0.0]]))

    def listed(self) -> int:
        """The size up to which, from either end, evaluating every set costs no more than sampling."""
        d = len(self.of_size) - 1
        if d <= log2(self.of_size.sum()):
            return d // 2
        size = 0
        while 2 * size + 2 <= d and min(self.of_size[size + 1], self.of_size[d - size - 1]) >= comb(d, size + 1):
            size += 1
        # At least five pairs are drawn, to estimate their variance.
        while size and self.of_size.sum() - self._n_listed(size) < 10:
            size -= 1
        return size

    def _n_listed(self, size: int) -> int:
        d = len(self.of_size) - 1
        return 2 + 2 * sum(comb(d, smaller) for smaller in range(1, size + 1))


def lime_draws(n_units: int, n_samples: int, rng: np.random.Generator) -> Draws:
    """The draws of the official package: everything kept, then n − 1 independent masks."""
    return Draws(lime_masks(n_units, n_samples, rng), np.ones(n_samples), 1, paired=False)


def spread_draws(law: Law, listed: int, n_samples: int, design: Design, rng: np.random.Generator) -> Draws:
    """Everything, nothing, all sets of up to `listed` kept or removed units, and draws for the sizes between.

    Listed masks have their exact mass; only the sizes between are random. Under "paired" and "stratified" every
    draw comes with its complement. That requires a law that is symmetric or, as LIME's, flat between the listed sizes.
    """
    d = len(law.of_size) - 1
    certain = [np.array([[True], [False]]).repeat(d, axis=1)]
    for size in range(1, listed + 1):
        rows = np.zeros((comb(d, size), d), dtype=bool)
        chosen = np.array(list(combinations(range(d), size)))
        np.put_along_axis(rows, chosen, values=True, axis=1)
        # Sets of half the units are the complements of sets of half the units.
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
    """Random masks whose sizes follow the inner part of the law."""
    n_places = n_samples if design == "independent" else n_samples // 2
    place = rng.random(n_places)
    if design == "stratified":
        place = (np.arange(n_places) + place) / n_places
    steps = np.cumsum(inner) / inner.sum()
    sizes = listed + 1 + np.minimum(np.searchsorted(steps, place), len(inner) - 1)
    gone = subsets(d, sizes, rng)
    return ~gone if design == "independent" else np.stack([~gone, gone], axis=1).reshape(-1, d)


def subsets(n: int, sizes: Int[np.ndarray, "mask"], rng: np.random.Generator) -> Bool[np.ndarray, "mask unit"]:
    """A uniformly random subset of each size."""
    # The s smallest of n random keys are a uniform subset; ties of 64-bit keys are negligible.
    keys = rng.integers(0, 2**64, size=(len(sizes), n), dtype=np.uint64)
    largest = np.take_along_axis(np.sort(keys, axis=1), sizes[:, None] - 1, axis=1)
    return keys <= largest


def first(order: Int[np.ndarray, "unit"], counts: Int[np.ndarray, "step"]) -> Bool[np.ndarray, "step unit"]:
    """For every count a mask of the first units of an order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place < counts[:, None]


def counts_of(shares: Float[np.ndarray, "step"], n_units: int) -> Int[np.ndarray, "step"]:
    """The number of units in each share of a document: rounded up, at least one."""
    return np.maximum(1, np.ceil(shares * n_units - 1e-9)).astype(np.int64)
