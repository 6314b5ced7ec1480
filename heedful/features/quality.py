"""How good a dictionary is: what of its rows it reconstructs, from how many features, and how many never are active."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput
from heedful.family import check_count
from heedful.features.dictionary import Dictionary
from heedful.features.source import Source, check_finite, rows_of
from heedful.statistics.intervals import wilson
from heedful.statistics.quantity import Quantity, ratio_of


@final
@dataclass(frozen=True)
class Splice:
    """What the model computes with the reconstructions in the place of its activations. Intervals are over texts.

    Two ablations are the reference: zero, which SAEBench uses, and the mean row. An activation that is far from zero
    everywhere makes zero a bad reference: the score of any dictionary is then nearly 1.
    """

    n_predictions: int
    """The number of next tokens that are predicted, or of texts that are classified."""
    loss_of: str
    """What the cross-entropy is of: "next tokens", "labels", or "own predictions" of a classifier without labels."""
    accuracy: Quantity
    """The share of labels that the unchanged model predicts; NaN without labels. At chance they may be of other
    classes."""
    loss: Quantity
    """The cross-entropy of the unchanged model, per prediction."""
    loss_spliced: Quantity
    loss_zero: Quantity
    loss_mean: Quantity
    loss_recovered: Quantity
    """(loss_zero − loss_spliced) / (loss_zero − loss); NaN where the ablation does not raise the loss measurably."""
    loss_recovered_mean: Quantity
    """The same with the mean ablation."""
    kl: Quantity
    """KL(unchanged ‖ spliced), per prediction."""
    kl_score: Quantity
    """(KL_zero − KL_spliced) / KL_zero."""
    kl_score_mean: Quantity
    agreement: Quantity
    """The share of predictions that stay the same."""

    @property
    def summary(self) -> str:
        """The metrics in one sentence."""
        right = f" (accuracy {self.accuracy})" if self.loss_of == "labels" else ""
        return (
            f"spliced into the model, {self.n_predictions:,} {self.loss_of}{right}: loss recovered "
            f"{self.loss_recovered} (against the mean ablation {self.loss_recovered_mean}), KL {self.kl}, KL score "
            f"{self.kl_score}, same prediction {self.agreement}"
        )


@final
@dataclass(frozen=True)
class Quality:
    """How good a dictionary is. Intervals are over texts, or over rows where these are independent draws."""

    n_rows: int
    n_texts: int | None
    """The number of texts that the rows come from; None if that is not known."""
    explained_variance: Quantity
    """1 − Σ‖x − x̂‖² / Σ‖x − mean‖², with the mean of all rows, which the interval takes as known."""
    l0: Quantity
    """The mean number of active features per row."""
    dead_share: Quantity
    """The share of features that are active in none of these rows; its interval is over features."""
    cosine: Quantity
    """The mean cosine of x and x̂."""
    splice: Splice | None = None
    """None if there is no model, or if its outputs have no probabilities."""

    @property
    def summary(self) -> str:
        """The metrics, on one line or two."""
        texts = "" if self.n_texts is None else f" of {self.n_texts:,} texts"
        own = (
            f"{self.n_rows:,} rows{texts}: explained variance {self.explained_variance}, {self.l0} active features "
            f"per row, {self.dead_share.value:.1%} never active, cosine {self.cosine}"
        )
        return own if self.splice is None else f"{own}\n{self.splice.summary}"

    __str__ = summary.fget  # type: ignore[assignment]

    def as_dict(self) -> dict[str, Any]:
        """Every metric by its name, ready for JSON: a ratio as [value, low, high], with None for what is not known."""
        flat = {name: value for name, value in asdict(self).items() if name != "splice"}
        flat |= {} if self.splice is None else asdict(self.splice)
        return {name: value.plain() if isinstance(value, Quantity) else value for name, value in flat.items()}


@final
class RowSums:
    """Collects what a `Quality` is made of, batch after batch, in double precision: 48 bytes a row."""

    def __init__(self, dictionary: Dictionary, mean: Float[Tensor, "d_e"]) -> None:
        self._dictionary, self.mean = dictionary.to(str(mean.device)), mean.double()
        self._active = torch.zeros(dictionary.width, dtype=torch.bool, device=mean.device)
        self._values: list[Float[np.ndarray, "row _"]] = []

    def add(self, rows: Float[Tensor, "row d_e"]) -> Float[Tensor, "row d_e"]:
        """Adds rows to the sums; returns their reconstructions."""
        active = self._dictionary.encode(rows)
        reconstructed = self._dictionary.decode(active)
        x, y = rows.double(), reconstructed.double()
        self._active |= (active > 0).any(dim=0)
        left, whole = (x - y).square().sum(dim=1), (x - self.mean).square().sum(dim=1)
        n_active = (active > 0).sum(dim=1).double()
        columns = [left, whole, n_active, torch.cosine_similarity(x, y, dim=1, eps=1e-30), torch.ones_like(left)]
        self._values.append(torch.stack(columns, dim=1).cpu().numpy())
        return reconstructed

    def result(self, groups: Any, independent: bool = True) -> Quality:
        """The metrics of all rows; `groups` are the numbers of the texts that they come from."""
        columns = np.concatenate(self._values).T
        n_rows, n_texts = columns.shape[1], None
        if groups is not None:
            try:
                texts, numbers = np.unique(np.asarray(groups), return_inverse=True)
            except (ValueError, TypeError):
                raise BadInput("groups is a list of one number for each row.") from None
            if numbers.shape != (n_rows,):
                raise BadInput(f"groups has the shape {numbers.shape}; give one number for each of {n_rows:,} rows.")
            columns, n_texts = np.stack([np.bincount(numbers, column) for column in columns]), len(texts)
        elif not independent:
            columns = columns.sum(axis=1, keepdims=True)
        left, whole, active, cosines, ones = columns
        unexplained = ratio_of(left, whole, (0.0, inf))
        n_dead, width = int((~self._active).sum()), len(self._active)
        return Quality(
            n_rows=n_rows,
            n_texts=n_texts,
            explained_variance=Quantity(1 - unexplained.value, 1 - unexplained.high, 1 - unexplained.low),
            l0=ratio_of(active, ones, (0.0, float(width))),
            dead_share=Quantity(n_dead / width, *wilson(n_dead, width)),
            cosine=ratio_of(cosines, ones, (-1.0, 1.0)),
        )


def mean_row(parts: Iterator[Float[Tensor, "row d_e"]]) -> Float[Tensor, "d_e"]:
    """The mean of rows that come in parts, in double precision."""
    total, n = 0.0, 0
    for part in parts:
        check_finite(part)
        total, n = part.double().sum(dim=0) + total, n + len(part)
    assert isinstance(total, Tensor)
    return total / n


def measure_rows(
    dictionary: Dictionary, rows: Any, groups: Any = None, n_rows: int | None = None, batch_size: int = 1_024
) -> Quality:
    """The quality on an array of activations, or on the first `n_rows` of a source; one chunk of it by default.

    Rows of one text are not independent, so that an interval over rows would be too narrow: `groups`, the number of
    the text of each row, gives one over texts. Without it the rows of an array are taken to be independent draws.
    Two passes over the rows: the first for their mean.
    """
    check_count("batch_size", batch_size)
    if n_rows is not None:
        check_count("n_rows", n_rows)
    parts = _parts_of(rows, n_rows, batch_size)
    sums = RowSums(dictionary, mean_row(parts()))
    for part in parts():
        sums.add(part)
    return sums.result(groups, not (isinstance(rows, Source) and rows.origin))


def _parts_of(rows: Any, n_rows: int | None, batch_size: int) -> Callable[[], Iterator[Float[Tensor, "row d_e"]]]:
    """A function that goes through the rows, a batch at a time."""
    if not isinstance(rows, Source):
        some = rows_of(rows)[:n_rows]
        return lambda: iter(some.split(batch_size))
    size = rows.rows_a_chunk
    wanted = size if n_rows is None else n_rows

    def parts() -> Iterator[Float[Tensor, "row d_e"]]:
        for number, first in enumerate(range(0, wanted, size)):
            yield from rows.chunk(number)[: wanted - first].split(batch_size)

    return parts
