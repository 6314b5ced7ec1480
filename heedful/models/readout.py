"""The positions of the last layer that the logits are read from, found by probing the model."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.document import Document
from heedful.errors import Unsupported
from heedful.models.attention_hook import ONE_THREAD, Attended, still
from heedful.models.recording import Recordable, record

Reading = Literal["first", "last", "all"]
"""The positions of the last layer that the logits are read from."""
READ_FROM = {"first": "the first token", "last": "the last token", "all": "the mean of all tokens"}


def reading_of(model: Recordable, document: Document) -> Reading:
    """Where the last layer's attention affects the logits: found by probing, not from the model's name."""
    support = influence(model, document, range(len(document.ids)))
    if support[0] and not support[1:].any():
        return "first"
    return "last" if support[-1] and not support[:-1].any() else "all"


@torch.no_grad()
def influence(model: Recordable, document: Document, places: Sequence[int]) -> Bool[np.ndarray, "place"]:
    """At which of these positions the last layer's attention affects the logits: each is set to zero in turn.

    One pass per position, all of the same shape, so that the logits are bitwise equal where a position is not read.
    """
    recording = record(model, [document])
    own = [n for n, call in enumerate(recording.calls) if call.kind == "self"]
    if not own:
        raise Unsupported("None of the model's attention goes through the attention hook.")
    if recording.calls[own[-1]].q.shape[2] <= max(places):
        raise Unsupported("The queries of the model's last attention layer do not correspond to its tokens.")

    def moved(place: int) -> bool:
        n_calls = iter(range(len(recording.calls)))

        def silence(call: Attended) -> Tensor:
            out = call.output()
            if next(n_calls) == own[-1]:
                out[:, :, place] = 0.0
            return out

        with still(model.network), model.listening(silence):
            return not torch.equal(model.forward(model.embed([document]), [document]), recording.logits)

    return np.array([moved(place) for place in places])


def readout_rows(reading: Reading, lengths: Sequence[int]) -> Float[Tensor, "batch query"]:
    """The weights of a reading for documents of these lengths, in a batch padded to the longest."""
    rows = torch.zeros(len(lengths), max(lengths), dtype=torch.float64)
    for row, length in zip(rows, lengths, strict=True):
        if reading == "all":
            row[:length] = 1 / length
        else:
            row[0 if reading == "first" else length - 1] = 1.0
    return rows


@contextmanager
def counted_forwards(network: nn.Module) -> Iterator[list[None]]:
    """Inside this context every forward pass of the network adds an entry to the list."""
    passes: list[None] = []
    with ONE_THREAD:
        handle = network.register_forward_pre_hook(lambda *_: passes.append(None))
        try:
            yield passes
        finally:
            handle.remove()
