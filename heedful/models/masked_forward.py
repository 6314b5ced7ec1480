"""Evaluation of masks by forward passes, in batches of similar length or common prefix."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.document import SPECIAL, Absence, Document
from heedful.errors import Unsupported
from heedful.models.attention_hook import still
from heedful.models.budget import PASS_MEMORY
from heedful.models.recording import Recordable
from heedful.target import Target

_TOKENS = {"cpu": 1024, "cuda": 1 << 19}
"""The maximum number of tokens in a batch: on a CPU, larger batches exceed the cache."""


class Maskable(Recordable):
    """A model that evaluates masks by forward passes: tokens are deleted, replaced, hidden, or given other vectors."""

    replacement_id: int
    """The id of the token that replaces removed ones."""

    @abstractmethod
    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """g, optionally with some tokens hidden from all attention."""

    @abstractmethod
    def word_id(self, word: str) -> int:
        """The token of a word that replaces others; refused if the word is several tokens or unknown."""

    @abstractmethod
    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:
        """The vector that replaces a removed token's word vector: zeros ("zero"), or the "mean"."""

    @abstractmethod
    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """e with this word vector at every token, or one vector per token."""

    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        at_once: int | None = None,
    ) -> Float[np.ndarray, "mask"]:
        """The target on every mask over tokens, by forward passes."""
        n = self.masks_at_once(document, None) if at_once is None else at_once
        return read_masked(self, document, keep, absence, n, lambda logits: _target(target, logits))

    def masks_at_once(self, document: Document, memory: int | None) -> int:
        """The number of copies of a document in one forward pass, within the memory limit or the default."""
        n_tokens, device = len(document.ids), next(self.network.parameters()).device
        if memory is None:
            memory = torch.cuda.mem_get_info(device)[0] // 4 if device.type == "cuda" else PASS_MEMORY
        # Without a gradient a layer's memory is free for the next.
        room = memory // max(1, self.bytes_a_document(n_tokens) // 2)
        return max(1, min(_TOKENS.get(device.type, _TOKENS["cpu"]) // n_tokens, room))


@torch.no_grad()
def read_masked(
    model: Maskable,
    document: Document,
    keep: Bool[np.ndarray, "mask token"],
    absence: Absence,
    at_once: int,
    read: Callable[[Tensor], Float[np.ndarray, "batch *_"]],
    before: Callable[[Bool[np.ndarray, "batch token"]], None] = lambda _: None,
) -> Float[np.ndarray, "mask *_"]:
    """What `read` makes of the logits on every mask. `before` gets the masks of a pass whose tokens keep their places.

    Texts with deleted tokens are sorted by length, others by the first gap: decoders read a common prefix once.
    """
    values: dict[int, Any] = {}
    kind, _, word = absence.partition(":")
    if kind == "cut":
        raise Unsupported("The absence 'cut' is for text that a language model writes; see heedful.attribute.")
    deleted = kind == "delete" and document.picture is None
    if deleted:
        lengths = keep.sum(axis=1)
        batches = _by_length(np.argsort(-lengths, kind="stable"), lengths, at_once * keep.shape[1], model.ragged)
    else:
        first = np.where(keep.all(axis=1), keep.shape[1], keep.argmin(axis=1))
        order = np.argsort(first, kind="stable")
        batches = (order[start : start + at_once] for start in range(0, len(order), at_once))
    replacement_id = (model.word_id(word) if word else model.replacement_id) if kind == "replace" else None
    with still(model.network):
        for some in batches:
            if not deleted:
                before(keep[some])
            if deleted:
                documents = [_shortened(document, row, model.replacement_id) for row in keep[some]]
                logits = model.forward(model.embed(documents), documents)
            elif replacement_id is not None and document.picture is None:
                documents = [_with_ids(document, ids) for ids in np.where(keep[some], document.ids, replacement_id)]
                logits = model.forward(model.embed(documents), documents)
            else:
                logits = _without_vectors(model, document, keep[some], kind)
            values.update(zip(some.tolist(), read(logits), strict=True))
    return np.stack([values[number] for number in range(len(keep))])


def _without_vectors(
    model: Maskable, document: Document, keep: Bool[np.ndarray, "mask token"], kind: str
) -> Float[Tensor, "mask class"]:
    """The logits with other vectors for the tokens that are not kept, or with those hidden from all attention."""
    documents = [document] * len(keep)
    e = model.embed([document]).expand(len(keep), -1, -1)
    # Padding behind the document's tokens is never removed.
    kept = torch.ones(e.shape[:2], dtype=torch.bool, device=e.device)
    kept[:, : keep.shape[1]] = torch.from_numpy(keep).to(e.device)
    if kind in ("mask", "delete"):
        # The output may be read from a hidden position, such as a decoder's last: what was removed must not be there.
        return model.forward(torch.where(kept[..., None], e, model.absent([document])), documents, ~kept)
    gone = model.filled([document], model.gone_vector(document, kind))
    return model.forward(torch.where(kept[..., None], e, gone), documents)


def _target(target: Target, logits: Float[Tensor, "batch class"]) -> Float[np.ndarray, "batch"]:
    if not target.is_linear:
        return target.of(logits.double().cpu().numpy())
    # A vocabulary's logits need not leave the device for the sake of one.
    value = logits[:, target.index].double()
    return (value if target.against is None else value - logits[:, target.against].double()).cpu().numpy()


def _by_length(
    order: Int[np.ndarray, "mask"], lengths: Int[np.ndarray, "mask"], n_tokens: int, ragged: bool
) -> Iterator[Int[np.ndarray, "_"]]:
    """Batches of masks with a limited number of tokens, longest first; of equal length if the model requires it."""
    start = 0
    for end in range(1, len(order) + 1):
        longest = max(1, int(lengths[order[start]]))
        full = end - start >= max(1, n_tokens // longest)
        if end == len(order) or full or not (ragged or lengths[order[end]] == longest):
            yield order[start:end]
            start = end


def _with_ids(document: Document, ids: Int[np.ndarray, "_"]) -> Document:
    """The document with other token ids, reduced to what a forward pass needs."""
    d = document
    return Document(d.text, ids, (), (), d.words, ids >= 0, (), d.segments, attached=d.attached)


def _shortened(document: Document, keep: Bool[np.ndarray, "token"], replacement_id: int) -> Document:
    """The document without some tokens; a text that would be empty keeps the replacement token.

    So does a prompt before an output: its first token is predicted from something. That token belongs to no word.
    """
    ids, words = document.ids[keep], document.words[keep]
    segments = None if document.segments is None else document.segments[keep]
    none = np.zeros((len(ids), 0))
    attached = none if document.attached is None else document.attached[keep]
    if not keep.any():
        ids, words, segments = np.array([replacement_id]), np.array([SPECIAL]), None
    elif segments is not None and segments.all():
        ids, words, segments = np.append(replacement_id, ids), np.append(SPECIAL, words), np.append(0, segments)
    # What was put there has nothing attached.
    attached = np.pad(attached, ((len(ids) - len(attached), 0), (0, 0)))
    return Document(document.text, ids, (), (), words, ids >= 0, (), segments, attached=attached)
