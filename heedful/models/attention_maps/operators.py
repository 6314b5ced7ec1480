"""Operators that make one number per token of all attention maps: of a map, over heads, over layers.

Reference: Mylonas, Mollas & Tsoumakas, *An Attention Matrix for Every Decision*, 2022, arXiv:2209.10876, Fig. 2.
Differs from the paper: a map is read first, then heads and layers are combined, so that no map is stored. The order
matters only where a maximum or a product meets another operator.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import BadInput, Unsupported
from heedful.models.attention_hook import Attended
from heedful.models.question import Question

OverHeads = int | Literal["mean", "sum", "max", "product"]
OverLayers = int | Literal["mean", "sum", "max", "product", "last"]
Reading = Literal["from-cls", "to-cls", "column-mean", "column-max", "row-mean", "row-max"]
_COMBINE = {"mean": torch.mean, "sum": torch.sum, "max": torch.amax, "product": torch.prod}
_ABOUT_KEYS = ("from-cls", "column-mean", "column-max")


def combined(values: Tensor, how: int | str, axis: int, noun: str) -> Tensor:
    """The values combined along an axis, or those of one number; `noun` says what the axis counts."""
    if isinstance(how, str):
        return values.select(axis, -1) if how == "last" else _COMBINE[how](values, dim=axis)
    n = values.shape[axis]
    if not -n <= how < n:
        raise BadInput(f"There is no {noun} {how}; the model has {n}, counted from 0 (or −1 for the last).")
    return values.select(axis, how)


@final
class StoredMaps(NamedTuple):
    """The maps of one layer, of a model whose own pass computes the read-out row alone."""

    maps: Float[Tensor, "1 head query key"]
    kind: Literal["self"] = "self"

    def portions(self) -> list[Int[Tensor, "row"]]:
        """All queries at once."""
        return [torch.arange(self.maps.shape[2])]

    def rows(self, queries: Int[Tensor, "row"]) -> Float[Tensor, "1 head row key"]:
        """The attention of some queries."""
        return self.maps[:, :, queries]


@final
class Looks(NamedTuple):
    """The attention calls that look at the documents, and two weights of their positions.

    `readout` weighs the positions that are read out; `real` is 1 at the rows of a document's own tokens.
    """

    question: Question
    calls: Sequence[Attended | StoredMaps]
    readout: Float[Tensor, "batch query"]
    real: Float[Tensor, "batch query"]

    @property
    def is_cross(self) -> bool:
        """Whether the calls look from a decoder at its source."""
        return self.calls[0].kind == "cross"

    @property
    def is_whole(self) -> bool:
        """Whether every position that may be read out has its row."""
        return all(not isinstance(c, StoredMaps) and c.q.shape[2] == self.readout.shape[1] for c in self.calls)

    def read(self, reading: Reading) -> Float[Tensor, "batch layer head _"]:
        """A number for each token of every map."""
        if reading not in _ABOUT_KEYS:
            _check_self(self, f'rows="{reading}"')
        by_layer = [self._of_rows(((q, call.rows(q)) for q in call.portions()), reading) for call in self.calls]
        return torch.stack(by_layer, dim=1)

    def read_product(self, reading: Reading, heads: OverHeads) -> Float[Tensor, "batch _"]:
        """The same of one map: the matrix product of all layers, from the last to the first, each over its heads."""
        _check_self(self, 'layers="product"')
        product = None
        for call in reversed(self.calls):
            rows = torch.cat([combined(call.rows(queries), heads, 1, "head") for queries in call.portions()], dim=1)
            product = rows if product is None else product @ rows
        assert product is not None
        return self._of_rows([(torch.arange(product.shape[1]), product[:, None])], reading)[:, 0]

    def _of_rows(
        self,
        portions: Iterable[tuple[Int[Tensor, "row"], Float[Tensor, "batch head row key"]]],
        reading: Reading,
    ) -> Float[Tensor, "batch head _"]:
        about_keys, parts = reading in _ABOUT_KEYS, []
        weights = self.readout if reading in ("from-cls", "to-cls") else self.real / self.real.sum(dim=1, keepdim=True)
        for queries, rows in portions:
            rows = torch.where(self.real[:, None, queries, None] > 0, rows.to(self.real), 0)
            if about_keys:
                pulled = torch.einsum("bs,bhst->bht", weights[:, queries], rows)
                parts.append(rows.amax(dim=2) if reading == "column-max" else pulled)
            elif reading == "row-max":
                parts.append((rows * self.real[:, None, None]).amax(dim=3))
            else:
                parts.append(torch.einsum("bt,bhst->bhs", weights, rows))
        if not about_keys:
            by_query = torch.cat(parts, dim=2)
            return torch.nn.functional.pad(by_query, (0, self.real.shape[1] - by_query.shape[2]))
        stacked = torch.stack(parts)
        return stacked.amax(dim=0) if reading == "column-max" else stacked.sum(dim=0)

    def placed(self, row: Float[Tensor, "batch _"]) -> Float[Tensor, "batch token"]:
        """Numbers of the calls' keys, or of their queries, at the documents' tokens."""
        pair = (torch.zeros_like(self.readout), row) if self.is_cross else (row, None)
        return self.question.recordable.placed(self.question.documents, *pair)


def looks_of(question: Question) -> Looks:
    """The recorded attention of the question's documents: of an encoder-decoder its cross-attention."""
    model, documents = question.recordable, question.documents
    n_sources, readout = model.n_sources(documents), model.readout(documents)
    calls = [call for call in question.recording.calls if call.kind == ("cross" if n_sources else "self")]
    real = torch.zeros_like(readout)
    for row, document, read in zip(real, documents, readout, strict=True):
        row[: int(read.nonzero().max()) + 1 if n_sources else len(document.ids)] = 1
    return Looks(question, calls, readout, real)


def whole_looks(question: Question) -> list[Looks]:
    """The same with a row for every token: of all documents at once, or of each alone from its maps."""
    looks = looks_of(question)
    if looks.is_whole:
        return [looks]
    each = []
    for index, document in enumerate(question.documents):
        maps = torch.from_numpy(question.recordable.maps(document))
        own = slice(index, index + 1)
        layers = [StoredMaps(layer[None]) for layer in maps]
        each.append(Looks(question.only([index]), layers, looks.readout[own], looks.real[own]))
        _check_self(each[-1], "This operator")
    return each


def _check_self(looks: Looks, operator: str) -> None:
    n_tokens = int(looks.real.sum(dim=1).max())
    if looks.is_cross or any(len(torch.cat(list(call.portions()))) < n_tokens for call in looks.calls):
        raise Unsupported(f"{operator} needs attention between the tokens of one text, which this model has not.")
