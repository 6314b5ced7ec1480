"""Models made of attention layers that can be listened to: what they all do in the same way."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid

from heedful.document import SPECIAL, Absence, Document
from heedful.errors import BadInput, Unsupported
from heedful.models import Model
from heedful.models.attention_hook import Attended, Listener, still
from heedful.models.budget import PASS_MEMORY
from heedful.models.masked_forward import at_once_in, masked_answers
from heedful.target import Target

Edit = Callable[[int, Float[Tensor, "batch head query key"]], Float[Tensor, "batch head query key"]]
"""Given a layer's number and its maps, the maps to use instead."""


@final
@dataclass(frozen=True, eq=False)
class Recording:
    """One forward pass: every attention call in the order it came, and the logits."""

    calls: tuple[Attended, ...]
    logits: Float[Tensor, "batch class"]


class Listened(Model):
    """A model whose attention passes by the hook."""

    network: Any
    """The torch module that computes it."""
    ragged: bool = True
    """Whether texts of different lengths can share a batch."""

    @abstractmethod
    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """While it lasts every attention call is told to the listener, which returns the call's output."""

    @abstractmethod
    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """How much of each position of the last layer the logits are read from: one on [CLS], say. Rows sum to one."""

    @abstractmethod
    def placed(
        self, documents: Sequence[Document], own: Float[Tensor, "batch _"], source: Float[Tensor, "batch _"] | None
    ) -> Float[Tensor, "batch token"]:
        """Numbers at the inputs of the tower that is read out and at its source's, brought to the documents' tokens."""

    @abstractmethod
    def n_sources(self, documents: Sequence[Document]) -> int:
        """How many positions the source has; 0 where there is none."""

    @abstractmethod
    def bytes_a_document(self, n_tokens: int) -> int:
        """About how much memory a forward pass with its gradient needs for a document of that length."""


def portions(model: Listened, documents: Sequence[Document]) -> list[Sequence[Document]]:
    """The documents in their order, as many at a time as half a gigabyte holds and the model takes together."""
    longest = max(len(document.ids) for document in documents)
    n = max(1, PASS_MEMORY // model.bytes_a_document(longest))
    found, start = [], 0
    for end in range(1, len(documents) + 1):
        full = end - start == n or end == len(documents)
        if full or not (model.ragged or len(documents[end].ids) == len(documents[start].ids)):
            found.append(documents[start:end])
            start = end
    return found


@torch.no_grad()
def record(model: Listened, documents: Sequence[Document]) -> Recording:
    """Runs the model once and keeps what its attention layers were given."""
    calls: list[Attended] = []

    def note(call: Attended) -> Tensor:
        calls.append(call)
        return call.output()

    with still(model.network), model.listening(note):
        logits = model.forward(model.embed(documents), documents)
    return Recording(tuple(calls), logits)


@torch.no_grad()
def read_rows(
    model: Listened, documents: Sequence[Document], recording: Recording
) -> Float[Tensor, "batch layer head token"]:
    """The attention of the positions that are read out, in every layer that looks at the document.

    Where there is a source these are the decoder's looks at it: what it pays to its own beginning is left out.
    """
    readout, n_sources = model.readout(documents), model.n_sources(documents)
    layers = []
    for call in recording.calls:
        if call.kind == ("cross" if n_sources else "self"):
            heads = (
                call.pulled(readout.to(torch.float64 if call.k.dtype == torch.float64 else torch.float32))
                .double()
                .unbind(1)
            )
            nothing = readout.double() * 0
            pairs = [(nothing, head) if n_sources else (head, None) for head in heads]
            layers.append(torch.stack([model.placed(documents, *pair) for pair in pairs], dim=1))
    return torch.stack(layers, dim=1)


class LayeredModel(Listened):
    """A model of attention layers whose answers all come from forward passes of its network."""

    replacement_id: int
    """The token that takes a removed one's place."""

    @abstractmethod
    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """g, with some tokens hidden from all attention if asked for."""

    @abstractmethod
    def word_id(self, word: str) -> int:
        """The token that a word is, to stand in for others; refused if it is several or unknown."""

    @abstractmethod
    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:
        """What takes the place of a token's word vector, or of every token's: nothing ("zero"), or the "mean"."""

    @abstractmethod
    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """e if every token had this word vector, or each its own."""

    def predict(self, texts: Sequence[Any]) -> Float[np.ndarray, "batch class"]:
        return self.logits([self.encode(text) for text in texts])

    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        if not documents:
            return np.zeros((0, len(self.classes)))
        with torch.no_grad(), still(self.network):
            rows = [self.forward(self.embed(some), some) for some in portions(self, documents)]
        return torch.cat(rows).double().cpu().numpy()

    def absent(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        if documents[0].picture is not None:
            return torch.zeros_like(self.embed(documents))
        emptied = [replace(d, ids=np.where(d.words == SPECIAL, d.ids, self.replacement_id)) for d in documents]
        return self.embed(emptied)

    def attention(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch layer head key"]:
        return read_rows(self, documents, record(self, documents)).cpu().numpy()

    @torch.no_grad()
    def maps(self, document: Document) -> Float[np.ndarray, "layer head query key"]:
        kind = "cross" if self.n_sources([document]) else "self"
        calls = record(self, [document]).calls
        return torch.stack([call.maps()[0].double() for call in calls if call.kind == kind]).cpu().numpy()

    @torch.no_grad()
    def edited(self, documents: Sequence[Document], edit: Edit) -> Float[np.ndarray, "batch class"]:
        """The logits under other attention: every layer's maps are handed to `edit`, and what it returns is used."""

        layers = count()

        def change(call: Attended) -> Tensor:
            return edit(next(layers), call.maps()).to(call.v) @ call.v

        with still(self.network), self.listening(change):
            logits = self.forward(self.embed(documents), documents).double().cpu().numpy()
        if not np.isfinite(logits).all():
            raise BadInput("Under this attention the model's output is not a finite number.")
        return logits

    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        at_once: int | None = None,
    ) -> Float[np.ndarray, "mask"]:
        n = self.masks_at_once(document, None) if at_once is None else at_once
        return masked_answers(self, document, target, keep, absence, n)

    def masks_at_once(self, document: Document, memory: int | None) -> int:
        return at_once_in(self, document, memory)


class OneTower(LayeredModel):
    """A layered model without a source beside it: its inputs are the documents' tokens as they stand."""

    def placed(
        self,
        documents: Sequence[Document],  # noqa: ARG002
        own: Float[Tensor, "batch _"],
        source: Float[Tensor, "batch _"] | None,  # noqa: ARG002
    ) -> Float[Tensor, "batch token"]:
        return own

    def n_sources(self, documents: Sequence[Document]) -> int:  # noqa: ARG002
        return 0


def values(targets: Sequence[Target], logits: Float[Tensor, "batch class"]) -> Float[Tensor, "batch"]:
    """Each document's target, differentiable; `Target.of` says the same of numbers at rest."""
    found = []
    for target, row in zip(targets, logits, strict=True):
        if target.scale == "log-probability":
            row = log_softmax(row, dim=-1) if len(row) > 1 else logsigmoid(row)
        found.append(row[target.index] if target.against is None else row[target.index] - row[target.against])
    return torch.stack(found)


def padded(
    rows: Sequence[Int[np.ndarray, "_"]], filler: int
) -> tuple[Int[Tensor, "batch token"], Bool[Tensor, "batch token"]]:
    """Token numbers filled up on the right to the longest, and which places hold one."""
    longest = max(len(row) for row in rows)
    numbers, there = np.full((len(rows), longest), filler), np.zeros((len(rows), longest), dtype=bool)
    for number, place, row in zip(numbers, there, rows, strict=True):
        number[: len(row)] = row
        place[: len(row)] = True
    return torch.from_numpy(numbers), torch.from_numpy(there)


Reading = Literal["first", "last", "all"]
"""Which positions of the last layer the logits are read from."""


def reading_of(model: Listened, document: Document) -> Reading:
    """Found by asking, not by the model's name: where does the last layer's attention move the logits?"""
    support = influence(model, document, range(len(document.ids)))
    if support[0] and not support[1:].any():
        return "first"
    return "last" if support[-1] and not support[:-1].any() else "all"


@torch.no_grad()
def influence(model: Listened, document: Document, places: Sequence[int]) -> Bool[np.ndarray, "place"]:
    """At which of some positions the last layer's attention moves the logits: each is silenced in turn.

    One pass each, all of one shape: where a position is not read the logits are then the same to the last bit.
    """
    recording = record(model, [document])
    own = [n for n, call in enumerate(recording.calls) if call.kind == "self"]
    if not own:
        raise Unsupported("None of the model's attention passed by.")
    if recording.calls[own[-1]].q.shape[2] <= max(places):
        raise Unsupported("The model's last attention layer does not look from its tokens, so it has no row of theirs.")

    def moved(place: int) -> bool:
        n_heard = iter(range(len(recording.calls)))

        def silence(call: Attended) -> Tensor:
            out = call.output()
            if next(n_heard) == own[-1]:
                out[:, :, place] = 0.0
            return out

        with still(model.network), model.listening(silence):
            return not torch.equal(model.forward(model.embed([document]), [document]), recording.logits)

    return np.array([moved(place) for place in places])


def readout_rows(reading: Reading, lengths: Sequence[int]) -> Float[Tensor, "batch query"]:
    """The weights of a reading for documents of these lengths, in a batch filled up to the longest."""
    rows = torch.zeros(len(lengths), max(lengths), dtype=torch.float64)
    for row, length in zip(rows, lengths, strict=True):
        if reading == "all":
            row[:length] = 1 / length
        else:
            row[0 if reading == "first" else length - 1] = 1.0
    return rows
