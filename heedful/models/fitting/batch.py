"""One batch of a training run as a loss sees it: texts, labels, logits, and attention with its gradient."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from typing import final

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.document import Document
from heedful.models.attention_hook import Attended
from heedful.models.recording import Edit, Recordable


@final
@dataclass(frozen=True, eq=False)
class FitBatch:
    """One forward pass in training. `rows` are the numbers of its documents among all training documents.

    `calls` are the attention calls in the order of execution, with gradients; there are none where neither the loss
    nor an edit needs them.
    """

    model: Recordable
    rows: Int[Tensor, "batch"]
    documents: Sequence[Document]
    labels: Int[Tensor, "batch"]
    embeddings: Float[Tensor, "batch token d_e"]
    logits: Float[Tensor, "batch class"]
    calls: tuple[Attended, ...]

    @property
    def attention(self) -> Float[Tensor, "batch head token"]:
        """The attention of the positions that are read out in the last layer, with its gradient, before any edit."""
        call = self.calls[-1]
        return call.pulled(self.model.readout(self.documents).to(call.k))


BatchLoss = Callable[[FitBatch], Tensor]
"""The mean loss over a batch."""


def cross_entropy(batch: FitBatch) -> Float[Tensor, ""]:
    """The cross-entropy of the labels."""
    return functional.cross_entropy(batch.logits, batch.labels)


def run_batch(
    model: Recordable,
    rows: Int[Tensor, "batch"],
    documents: Sequence[Document],
    labels: Int[Tensor, "batch"],
    loss: BatchLoss = cross_entropy,
    edit: Edit | None = None,
) -> FitBatch:
    """Runs the model on a batch, under edited attention if there is an edit; only cross-entropy needs no calls."""
    calls: list[Attended] = []
    layers = count()

    def note(call: Attended) -> Tensor:
        calls.append(call)
        return call.output() if edit is None else edit(next(layers), call.maps()).to(call.v) @ call.v

    embeddings = model.embed(documents)
    with nullcontext() if edit is None and loss is cross_entropy else model.listening(note):
        logits = model.forward(embeddings, documents)
    return FitBatch(model, rows, documents, labels, embeddings, logits, tuple(calls))
