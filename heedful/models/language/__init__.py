"""The contract of language models: they write text token by token, and keep what they have read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.document import Document
from heedful.errors import Unsupported
from heedful.models import Model, Offer, check_model
from heedful.models.layered import LayeredModel

CutLogits = Callable[[Bool[np.ndarray, "mask token"]], Float[Tensor, "mask query vocabulary"]]
"""The logits at some positions for masks over the tokens of a document."""


@final
@dataclass(frozen=True, eq=False)
class Prefix:
    """Rows of tokens that a language model has read, all of one length, with its cache and what it expects next."""

    cache: Any
    """The keys and values of every layer; of a model without a cache the tokens themselves."""
    logits: Float[Tensor, "row vocabulary"]
    """The logits of the token that comes next."""
    n_read: int
    """The number of tokens read by the part of the model that writes."""
    source: Any = None
    """What the encoder of an encoder-decoder computed."""


class LanguageModel(LayeredModel):
    """A model that writes text: its classes are the possible next tokens."""

    provides: ClassVar[frozenset[Offer]] = frozenset({"text"})

    end_ids: frozenset[int]
    """The tokens that end a text."""
    room: int | None
    """The largest number of tokens that it reads and writes together; None if there is no limit."""
    caches: bool = True
    """Whether it keeps what it has read; without a cache, `go_on` reads the whole text again."""
    first_id: int | None = None
    """The token that its settings demand at the beginning of every output, such as the language of a translation."""
    last_id: int | None = None
    """The token that its settings demand at the end of an output that reaches its limit."""

    @property
    @abstractmethod
    def head(self) -> nn.Module:
        """The layer that turns the states of the last layer into logits, position by position."""

    @abstractmethod
    def token_logits(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
        n_last: int = 1,
    ) -> Float[Tensor, "batch query vocabulary"]:
        """The logits after each of the last `n_last` tokens of every document; differentiable."""

    @abstractmethod
    def cut(self, document: Document, n_last: int) -> CutLogits:
        """A function of masks: `token_logits`, if the last `n_last` positions do not attend to the tokens masked out.

        What comes before these positions is read once, with every token. A position always attends to itself.
        """

    @abstractmethod
    def read(self, document: Document) -> Prefix:
        """Reads a document, as a prefix of one row. This and what follows run inside `still` and without gradients."""

    @abstractmethod
    def go_on(self, prefix: Prefix, ids: Int[Tensor, "row"]) -> Prefix:
        """Reads one more token in every row. The old prefix cannot be used again."""

    @abstractmethod
    def select(self, prefix: Prefix, rows: Int[Tensor, "_"]) -> Prefix:
        """Some rows of a prefix, in this order; a row may be repeated. The old prefix cannot be used again."""

    @abstractmethod
    def spell(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""

    @abstractmethod
    def typed(self, document: Document, text: str) -> list[int]:
        """The tokens of a text that stands behind a document."""

    @abstractmethod
    def continued(self, document: Document, ids: Sequence[int]) -> Document:
        """A document with tokens that the model wrote or could have written behind it, in segment 1.

        They are words of their own, numbered on after the document's words.
        """


class FillsIn(ABC):
    """A model that fills in missing words: it gives a probability to a token from all others."""

    @abstractmethod
    def masked_copies(self, text: object) -> tuple[list[int], list[Document]]:
        """The tokens of a text without special ones, and a copy of the text with each of them masked and read."""


def first_tokens(document: Document, n: int) -> Document:
    """The first tokens of a document, reduced to what a forward pass needs."""
    ids, segments = document.ids[:n], None if document.segments is None else document.segments[:n]
    return Document(document.text, ids, (), (), document.words[:n], ids >= 0, (), segments)


def check_writes(model: Model) -> LanguageModel:
    """The model itself; one that does not write text is refused, and so is what is no model."""
    check_model(model)
    if isinstance(model, LanguageModel):
        return model
    raise Unsupported(
        f"This model does not write text: it returns {model.returns} of {len(model.classes):,} {model.outputs}. "
        'Load a language model, such as heedful.load("writer").'
    )
