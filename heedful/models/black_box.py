"""Any function from texts to scores, as a model of which nothing but its answers is known."""

import re
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Absence, Document, one_text
from heedful.effort import ORDINARY
from heedful.errors import BadInput, Unsupported
from heedful.models import Model, Offer
from heedful.target import Target
from heedful.trace import Trace

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_MASKS = 256


@final
class BlackBox(Model):
    """A function `list[str] -> scores (texts, classes)`: it is asked for texts with words taken out or replaced."""

    offers: frozenset[Offer] = frozenset({"masks"})
    fingerprint = "function"

    def __init__(self, function: Callable[[list[str]], Any], classes: Sequence[str] | None, replacement: str) -> None:
        self.function = function
        self.replacement = replacement
        n_classes = self._ask(["a"]).shape[1]
        self.classes = tuple(classes) if classes is not None else tuple(f"score {n}" for n in range(n_classes))
        if len(self.classes) != n_classes:
            raise BadInput(f"The function gives {n_classes} scores a text, and {len(self.classes)} classes were named.")

    def __repr__(self) -> str:
        return f"<function {getattr(self.function, '__name__', 'of texts')}: {', '.join(self.classes)}>"

    def encode(self, text: object) -> Document:
        words = list(_WORD.finditer(one_text(text)))
        return Document(
            text=one_text(text),
            ids=np.arange(len(words)),
            pieces=tuple(word.group() for word in words),
            spans=tuple(word.span() for word in words),
            words=np.arange(len(words)),
            known=np.ones(len(words), dtype=bool),
        )

    def predict(self, texts: Sequence[str]) -> Float[np.ndarray, "batch class"]:
        return self._ask(list(texts)) if texts else np.zeros((0, len(self.classes)))

    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        return self.predict([document.text for document in documents])

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:  # noqa: ARG002
        raise Unsupported("A function has no embeddings.")

    def absent(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:  # noqa: ARG002
        raise Unsupported("A function has no embeddings.")

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],  # noqa: ARG002
        documents: Sequence[Document],  # noqa: ARG002
    ) -> Float[Tensor, "batch class"]:
        raise Unsupported("A function has no embeddings.")

    def trace(self, documents: Sequence[Document]) -> Trace:  # noqa: ARG002
        raise Unsupported("The attention of a function cannot be seen.")

    def maps(self, document: Document) -> Float[np.ndarray, "layer head query key"]:  # noqa: ARG002
        raise Unsupported("The attention of a function cannot be seen.")

    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        memory: int = ORDINARY,  # noqa: ARG002
    ) -> Float[np.ndarray, "mask"]:
        kind, _, word = absence.partition(":")
        if kind not in ("replace", "delete"):
            raise Unsupported(
                f"From a function's text a word can be deleted or replaced; {absence!r} means nothing here."
            )
        gone = (word or self.replacement) if kind == "replace" else ""
        answers = []
        for start in range(0, len(keep), _MASKS):
            answers.append(self._ask([_thinned(document, row, gone) for row in keep[start : start + _MASKS]]))
        return target.of(np.concatenate(answers))

    def masks_at_once(self, document: Document, absence: Absence, memory: int) -> int:  # noqa: ARG002
        return _MASKS

    def _ask(self, texts: list[str]) -> Float[np.ndarray, "batch class"]:
        try:
            scores = np.asarray(self.function(texts), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise BadInput(f"The function did not give numbers for a list of texts: {error}.") from error
        scores = scores[:, None] if scores.ndim == 1 else scores
        if scores.ndim != 2 or len(scores) != len(texts):
            raise BadInput(
                f"The function gave scores of shape {scores.shape} for {len(texts)} texts; wanted: (texts, classes)."
            )
        return scores


def _thinned(document: Document, keep: Bool[np.ndarray, "token"], gone: str) -> str:
    """The text with the words that are not kept replaced; everything between words stays as it was."""
    parts, end = [], 0
    for (start, stop), kept in zip(document.spans, keep, strict=True):
        parts += [document.text[end:start], document.text[start:stop] if kept else gone]
        end = stop
    return "".join([*parts, document.text[end:]])
