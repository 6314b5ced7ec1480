"""The contract of every model, and how one is loaded."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Absence, Document
from heedful.errors import BadCheckpoint, BadInput
from heedful.trace import Trace

Offer = Literal["masks", "gradients", "attention", "weights", "pooling"]


class Model(ABC):
    """f = g ∘ e: documents in, one logit a class out, and a look inside."""

    classes: tuple[str, ...]
    offers: frozenset[Offer]
    fingerprint: str
    """A hash of the weights, kept with every explanation."""

    @abstractmethod
    def encode(self, text: str) -> Document:
        """The text as this model reads it."""

    @abstractmethod
    def predict(self, texts: Sequence[str]) -> Float[np.ndarray, "batch class"]:
        """f of every text, by the shortest way."""

    @abstractmethod
    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        """f of every document."""

    @abstractmethod
    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """e: the vectors that enter the network, special tokens and padding included."""

    @abstractmethod
    def forward(self, embeddings: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch class"]:
        """g: logits from those vectors, differentiable."""

    @abstractmethod
    def trace(self, documents: Sequence[Document]) -> Trace:
        """Attention, for every layer and head, of the query that is read out."""

    @abstractmethod
    def maps(self, document: Document) -> Float[np.ndarray, "layer head query key"]:
        """The whole attention matrices over the document's own tokens."""

    @abstractmethod
    def masked(
        self,
        document: Document,
        target: Float[np.ndarray, "class"],
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
    ) -> Float[np.ndarray, "mask"]:
        """target · f for every way of keeping tokens; special tokens must be kept."""

    def __call__(self, texts: Sequence[str]) -> Float[np.ndarray, "batch class"]:
        if isinstance(texts, str):
            raise BadInput('A model takes a list of texts; write model(["a text"]).')
        return self.predict(texts)


def load(name: str) -> Model:
    """The bundled model ("paper"), or one trained here, by its folder or file."""
    from heedful.models.single_layer import SingleLayer

    if name == "paper":
        return SingleLayer.load(Path(__file__).parent / "checkpoints" / "paper.safetensors")
    path = Path(name)
    if path.is_dir():
        path = path / "model.safetensors"
    if not path.exists():
        raise BadCheckpoint(
            f'There is no model {name!r}: give "paper", or a folder or file that `heedful train` wrote.'
        )
    return SingleLayer.load(path)
