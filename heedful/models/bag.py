"""A bag of items that attention pools into one output: image patches, sentences, instances."""

import hashlib
from collections.abc import Sequence
from functools import partial
from math import inf
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor

from heedful.document import SPECIAL, Absence, Document
from heedful.errors import BadInput, Unsupported
from heedful.models.pooling import Evaluator, Pool, Pooling, PoolingModel, in_portions


@final
class Bag(PoolingModel):
    """One bag of items as a model of a single document, `text`: f_c = 1/K Σ_i Σ_t softmax(scores_i)_t values_{c,i,t}.

    For attention-based multiple-instance models (Ilse, Tomczak & Welling, 2018) and attention-pooling heads over frozen
    embeddings: scores and values are all that exact LIME and Shapley values need. `scores` is (heads, items) or
    (items,); `values` (classes, heads, items), (heads, items) or (items,). `gone_scores` and `gone_values`, of the same
    shapes, are those of the replacement of a removed item. Without them a removed item gets no attention, and at least
    one item must never be removed: one whose name is None.

        bag = heedful.Bag(scores, values, names=["patch 1", "patch 2", …], gone_scores=…, gone_values=…)
        heedful.compare(bag, bag.text)
    """

    def __init__(
        self,
        scores: ArrayLike,
        values: ArrayLike,
        names: Sequence[str | None] | None = None,
        gone_scores: ArrayLike | None = None,
        gone_values: ArrayLike | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        self.scores, self.values = _filled(scores, 2), _filled(values, 3)
        if (gone_scores is None) != (gone_values is None):
            raise BadInput("gone_scores and gone_values must be given together.")
        self.gone_scores = torch.full_like(self.scores, -inf) if gone_scores is None else _filled(gone_scores, 2)
        self.gone_values = torch.zeros_like(self.values) if gone_values is None else _filled(gone_values, 3)
        same_shapes = self.scores.shape == self.gone_scores.shape and self.values.shape == self.gone_values.shape
        if not same_shapes or self.values.shape[1:] != self.scores.shape:
            raise BadInput(
                f"Scores {tuple(self.scores.shape)} and values {tuple(self.values.shape)}, of kept and "
                "removed items, have incompatible shapes."
            )
        n_items = self.scores.shape[1]
        self.names = tuple(f"item-{number}" for number in range(n_items)) if names is None else tuple(names)
        self.classes = (
            tuple(f"score {number}" for number in range(len(self.values))) if classes is None else tuple(classes)
        )
        if len(self.names) != n_items or len(self.classes) != len(self.values):
            raise BadInput(
                f"The bag has {n_items} items and {len(self.values)} classes; give one name for each item and class."
            )
        if any(name is not None and not name.strip() for name in self.names):
            raise BadInput("Every item needs a name, or None if it is never removed.")
        digest = hashlib.sha256(repr((self.names, self.classes)).encode())
        for part in (self.scores, self.values, self.gone_scores, self.gone_values):
            digest.update(part.contiguous().numpy().tobytes())
        self.fingerprint = digest.hexdigest()[:16]
        self.family = f"bag of {len(self.names)} items"

    @property
    def text(self) -> str:
        """The names of the items, which is the document to explain."""
        return " ".join(name for name in self.names if name is not None)

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        if text != self.text:
            raise BadInput("A bag explains only its own items; explain its `text`.")
        spans, words, end = [], [], -1
        for name in self.names:
            start = end + 1 if name is not None else max(end, 0)
            end = start + len(name) if name is not None else end
            spans.append((start, end) if name is not None else (start, start))
            words.append(max(words, default=SPECIAL) + 1 if name is not None else SPECIAL)
        return Document(
            text=self.text,
            ids=np.arange(len(self.names)),
            pieces=tuple("[fixed]" if name is None else name for name in self.names),
            spans=tuple(spans),
            words=np.array(words),
            known=np.ones(len(self.names), dtype=bool),
        )

    def predict(self, texts: Sequence[str]) -> Float[np.ndarray, "batch class"]:
        """The logits of every text."""
        return self.logits([self.encode(text) for text in texts])

    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        """The logits of every document."""
        output = (torch.softmax(self.scores, dim=1) * self.values).sum(dim=2).mean(dim=1).numpy()
        return np.repeat(output[None], len(documents), axis=0)

    def attention(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch layer head key"]:
        """Attention of the positions that are read out."""
        alpha = torch.softmax(self.scores, dim=1).numpy()
        return np.repeat(alpha[None, None], len(documents), axis=0)

    def maps(self, document: Document) -> Float[np.ndarray, "layer head query key"]:  # noqa: ARG002
        """The whole attention matrices."""
        return torch.softmax(self.scores, dim=1)[None, :, None].numpy()

    def evaluator(
        self, document: Document, target: Float[np.ndarray, "class"], absence: Absence, pool: Pool
    ) -> Evaluator:
        """The target of the bag as a function of masks."""
        return in_portions(partial(pool([document], target[None], absence).values, 0), self.scores.device)

    def pooling(
        self, documents: Sequence[Document], targets: Float[np.ndarray, "batch class"], absence: Absence
    ) -> Pooling:
        """Scores and values of every position, kept or removed."""
        if absence not in ("replace", "mask"):
            raise Unsupported(f"The absence is {absence!r}; for items of a bag give replace or mask.")
        gone = self.gone_scores if absence == "replace" else torch.full_like(self.scores, -inf)
        c = torch.from_numpy(targets).double()
        w, w_gone = (torch.tensordot(c, part, dims=1) for part in (self.values, self.gone_values))
        size = len(documents), *self.scores.shape
        return Pooling(self.scores.expand(size), w, gone.expand(size), w_gone)


def _filled(numbers: ArrayLike, n_axes: int) -> Float[Tensor, "..."]:
    """Numbers in double precision; missing leading axes are added with length one."""
    if isinstance(numbers, Tensor):
        numbers = numbers.detach().cpu().numpy()
    array = np.array(numbers, dtype=np.float64)
    if array.ndim > n_axes or array.ndim == 0 or np.isnan(array).any() or (array == inf).any():
        raise BadInput("A bag is made of finite numbers: scores (heads, items) and values (classes, heads, items).")
    return torch.from_numpy(array.reshape((1,) * (n_axes - array.ndim) + array.shape))
