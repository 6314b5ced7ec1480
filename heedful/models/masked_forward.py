"""f of a layered model on many masks: batches built from token numbers, like lengths and like beginnings together."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.document import Absence, Document
from heedful.models.attention_hook import still
from heedful.models.budget import PASS_MEMORY
from heedful.target import Target

_TOKENS = {"cpu": 1024, "cuda": 1 << 19}
"""How many tokens a batch has at most: on a CPU more would only leave its cache."""


@runtime_checkable
class Maskable(Protocol):
    """What is asked of a model here; `LayeredModel` says what each of these is."""

    network: Any
    replacement_id: int
    ragged: bool

    def embed(self, documents: Sequence[Document]) -> Tensor: ...
    def forward(self, embeddings: Tensor, documents: Sequence[Document], hidden: Tensor | None = None) -> Tensor: ...
    def filled(self, documents: Sequence[Document], vector: Tensor) -> Tensor: ...
    def gone_vector(self, document: Document, kind: str) -> Tensor: ...
    def word_id(self, word: str) -> int: ...
    def bytes_a_document(self, n_tokens: int) -> int: ...


def at_once_in(model: Maskable, document: Document, memory: int | None) -> int:
    """How many copies of a document a forward pass had best hold, in so much memory or in what the machine has."""
    n_tokens, device = len(document.ids), next(model.network.parameters()).device
    if memory is None:
        memory = torch.cuda.mem_get_info(device)[0] // 4 if device.type == "cuda" else PASS_MEMORY
    # Without a gradient a layer's memory is free for the next.
    room = memory // max(1, model.bytes_a_document(n_tokens) // 2)
    return max(1, min(_TOKENS.get(device.type, _TOKENS["cpu"]) // n_tokens, room))


@torch.no_grad()
def masked_answers(
    model: Maskable,
    document: Document,
    target: Target,
    keep: Bool[np.ndarray, "mask token"],
    absence: Absence,
    at_once: int,
) -> Float[np.ndarray, "mask"]:
    """The target on every mask.

    Thinned texts are sorted by their length, so that little is filled up; where every token keeps its place, by where
    the first gap is, so that those that begin alike go together: decoders read a common beginning once.
    """
    kind, _, word = absence.partition(":")
    values = np.zeros(len(keep))
    if kind == "delete" and document.picture is None:
        lengths = keep.sum(axis=1)
        order = np.argsort(-lengths, kind="stable")
        batches = _by_length(order, lengths, at_once * keep.shape[1], model.ragged)
    else:
        first = np.where(keep.all(axis=1), keep.shape[1], keep.argmin(axis=1))
        order = np.argsort(first, kind="stable")
        batches = (order[start : start + at_once] for start in range(0, len(order), at_once))
    replacement_id = (model.word_id(word) if word else model.replacement_id) if kind == "replace" else None
    with still(model.network):
        for some in batches:
            if kind == "delete" and document.picture is None:
                documents = [_thinned(document, row, model.replacement_id) for row in keep[some]]
                logits = model.forward(model.embed(documents), documents)
            elif replacement_id is not None and document.picture is None:
                documents = [_with_ids(document, ids) for ids in np.where(keep[some], document.ids, replacement_id)]
                logits = model.forward(model.embed(documents), documents)
            else:
                logits = _without_vectors(model, document, keep[some], kind)
            values[some] = _target(target, logits)
    return values


def _without_vectors(
    model: Maskable, document: Document, keep: Bool[np.ndarray, "mask token"], kind: str
) -> Float[Tensor, "mask class"]:
    """The logits with other vectors in the place of what is not kept, or with it hidden from all attention."""
    documents = [document] * len(keep)
    e = model.embed([document]).expand(len(keep), -1, -1)
    # Padding behind the document's tokens is never removed.
    there = torch.ones(e.shape[:2], dtype=torch.bool, device=e.device)
    there[:, : keep.shape[1]] = torch.from_numpy(keep).to(e.device)
    if kind in ("mask", "delete"):
        return model.forward(e.contiguous(), documents, ~there)
    gone = model.filled([document], model.gone_vector(document, kind))
    return model.forward(torch.where(there[..., None], e, gone), documents)


def _target(target: Target, logits: Float[Tensor, "batch class"]) -> Float[np.ndarray, "batch"]:
    if target.scale != "logit":
        return target.of(logits.double().cpu().numpy())
    # A vocabulary's logits need not leave the device for the sake of one.
    one = logits[:, target.index].double()
    return (one if target.against is None else one - logits[:, target.against].double()).cpu().numpy()


def _by_length(
    order: Int[np.ndarray, "mask"], lengths: Int[np.ndarray, "mask"], n_tokens: int, ragged: bool
) -> Iterator[Int[np.ndarray, "_"]]:
    """Masks from long to short, as many at a time as so many tokens hold; of one length where the model asks for it."""
    start = 0
    for end in range(1, len(order) + 1):
        longest = max(1, int(lengths[order[start]]))
        full = end - start >= max(1, n_tokens // longest)
        if end == len(order) or full or not (ragged or lengths[order[end]] == longest):
            yield order[start:end]
            start = end


def _with_ids(document: Document, ids: Int[np.ndarray, "_"]) -> Document:
    """The document with other token numbers, for a forward pass: nothing is there that only a reader needs."""
    return Document(document.text, ids, (), (), ids, ids >= 0, (), document.segments)


def _thinned(document: Document, keep: Bool[np.ndarray, "token"], replacement_id: int) -> Document:
    """The document without some tokens; as no model reads nothing at all, the unknown token is left of such a text."""
    ids = document.ids[keep] if keep.any() else np.array([replacement_id])
    segments = None if document.segments is None or not keep.any() else document.segments[keep]
    return Document(document.text, ids, (), (), ids, ids >= 0, (), segments)
