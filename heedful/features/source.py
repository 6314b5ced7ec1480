"""Where the rows of activations come from that an autoencoder is trained on: chunk after chunk, in bounded memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput, in_short
from heedful.models.fingerprint import hash_of
from heedful.models.training_loop import shuffled


class Source(ABC):
    """Gives rows of activations in chunks of the same size; a chunk depends on its number alone."""

    d_e: int
    """The number of dimensions of a row."""
    rows_a_chunk: int
    """Every chunk has exactly so many rows; with `d_e` it bounds the memory."""
    n_rows: int = 1 << 62
    """The number of different rows; without end where every chunk is drawn anew."""
    about: str
    """What the data is, by a hash or its settings: a run with other data is another run."""
    origin: Mapping[str, Any] = MappingProxyType({})
    """The model, part and layer that the rows come from, as a card names them; empty if that is not known."""

    @abstractmethod
    def chunk(self, number: int) -> Float[Tensor, "row d_e"]:
        """Rows in single precision and random order; the same number always gives the same rows.

        Any number from 0 is valid: the data is passed over again and again.
        """


class KnownSource(Source):
    """A source whose features are known, so that a dictionary can be judged by them."""

    @property
    @abstractmethod
    def directions(self) -> Float[Tensor, "feature d_e"]:
        """The direction of each feature, of length 1."""

    @abstractmethod
    def sample(
        self, n: int, seed: int = 0, number: int = 0
    ) -> tuple[Float[Tensor, "row feature"], Float[Tensor, "row d_e"]]:
        """The activation of every feature in n rows, and the rows. They are in no chunk, whatever the seeds."""


@final
class ArraySource(Source):
    """The rows of an array, in another order in every pass; `about` and `origin` say what they are if that is known."""

    def __init__(
        self,
        rows: Float[Tensor, "row d_e"],
        seed: int,
        rows_a_chunk: int,
        about: str = "",
        origin: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.rows, self.seed, self.origin = rows, seed, origin
        self.d_e, self.rows_a_chunk, self.n_rows = rows.shape[1], rows_a_chunk, len(rows)
        self.about = about or f"array {tuple(rows.shape)} {hash_of(rows)}"
        self._order: tuple[int, Tensor] = (-1, torch.zeros(0, dtype=torch.long))

    def chunk(self, number: int) -> Float[Tensor, "row d_e"]:
        """A part of the permuted rows."""
        first = number * self.rows_a_chunk
        parts = stretches(first, first + self.rows_a_chunk, len(self.rows))
        return self.rows[torch.cat([self._permuted(n)[start:end] for n, start, end in parts])].float()

    def _permuted(self, number: int) -> Tensor:
        """The order of the rows in a pass; that of the last pass is kept."""
        if self._order[0] != number:
            self._order = number, shuffled(len(self.rows), self.seed, number)
        return self._order[1]


def stretches(start: int, end: int, n: int) -> Iterator[tuple[int, int, int]]:
    """Rows `start` to `end` of n rows that are passed over again and again: (pass, start, end) in each pass."""
    while start < end:
        number, first = divmod(start, n)
        last = min(n, first + end - start)
        yield number, first, last
        start += last - first


def rows_of(activations: Any) -> Float[Tensor, "row d_e"]:
    """An array of activations as a tensor; one that is not rows × dimensions, or not finite, is refused."""
    rows = activations if isinstance(activations, Tensor) else torch.from_numpy(np.array(numbers_of(activations)))
    if rows.ndim != 2 or 0 in rows.shape:
        raise BadInput(f"Activations are an array of rows × dimensions; one of shape {tuple(rows.shape)} was given.")
    if not rows.is_floating_point():
        rows = rows.float()
    check_finite(rows)
    return rows.detach()


def check_finite(rows: Float[Tensor, "row d_e"]) -> None:
    """Refuses activations that are not finite numbers, and says which row is the first."""
    bad = ~rows.isfinite().all(dim=1)
    if bad.any():
        raise BadInput(
            f"{int(bad.sum()):,} of {len(rows):,} rows of activations are not finite numbers, the first is row "
            f"{int(bad.nonzero()[0])}; remove them, or check the model's weights."
        )


def numbers_of(activations: Any) -> np.ndarray:
    """An array of numbers as torch reads them: in the byte order of the machine; anything else is refused."""
    try:
        array = np.asarray(activations)
    except ValueError:
        raise BadInput("Activations are an array of numbers; rows of different lengths were given.") from None
    if array.dtype.kind not in "fiu":
        raise BadInput(f"Activations are an array of numbers; {in_short(activations)} was given.")
    wide = np.dtype(np.float64) if array.dtype.itemsize > 8 else array.dtype.newbyteorder("=")
    return np.ascontiguousarray(array, dtype=wide)
