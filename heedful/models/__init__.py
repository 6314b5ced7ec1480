"""The contract of every model, and how one is loaded."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Absence, Document
from heedful.errors import BadCheckpoint, BadInput, MissingPackage
from heedful.models.foreign import function_of, is_estimator, is_pipeline, parts_of
from heedful.target import Target

Offer = Literal["masks", "gradients", "attention", "layers", "weights", "pooling"]
"""What can be asked of a model: f on thinned texts, gradients at its embeddings, the attention of what is read out,
every attention layer by itself, the weights of the paper's model, what its attention pools."""


class Model(ABC):
    """f = g ∘ e: documents in, one logit a class out, and a look inside."""

    classes: tuple[str, ...]
    offers: frozenset[Offer]
    fingerprint: str
    """A hash of the weights, kept with every explanation."""

    @abstractmethod
    def encode(self, text: Any) -> Document:
        """The text, pair or picture as this model reads it."""

    @abstractmethod
    def predict(self, texts: Sequence[Any]) -> Float[np.ndarray, "batch class"]:
        """f of every text, by the shortest way."""

    @abstractmethod
    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        """f of every document."""

    @abstractmethod
    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """e: the vectors that enter the network, special tokens and padding included."""

    @abstractmethod
    def absent(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """e of the same documents with every token but the special ones replaced by the unknown or mask token."""

    @abstractmethod
    def forward(
        self, embeddings: Float[Tensor, "batch token d_e"], documents: Sequence[Document]
    ) -> Float[Tensor, "batch class"]:
        """g: logits from those vectors, which stand in the places of the documents' tokens; differentiable."""

    @abstractmethod
    def attention(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch layer head key"]:
        """Attention, for every layer and head, of the query that is read out."""

    @abstractmethod
    def maps(self, document: Document) -> Float[np.ndarray, "layer head query key"]:
        """The whole attention matrices over the document's own tokens."""

    @abstractmethod
    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        at_once: int | None = None,
    ) -> Float[np.ndarray, "mask"]:
        """The target for every way of keeping tokens, no more than `at_once` in a pass; special tokens must be kept."""

    @abstractmethod
    def masks_at_once(self, document: Document, memory: int | None) -> int:
        """How many masks a pass had best hold, in so many bytes or in what is usual."""

    def __call__(self, texts: Sequence[Any]) -> Float[np.ndarray, "batch class"]:
        if isinstance(texts, str):
            raise BadInput('A model takes a list of texts; write model(["a text"]).')
        return self.predict(texts)


def load(name: str, device: str = "cpu", precision: str = "float32") -> Model:
    """The bundled model ("paper"), one trained here by its folder or file, or any Hugging Face model.

    A Hugging Face model is named by its folder or its name on the hub, and read in single precision unless another is
    asked for ("float64", "bfloat16", "float16").
    """
    from heedful.models.single_layer import SingleLayer
    from heedful.models.transformer_file import holds_transformer, load_transformer

    if not isinstance(name, str | Path) or not str(name):
        raise BadInput(f'A model is named by a string, such as "paper" or a folder; {name!r} was given.')
    name = str(name)
    path = Path(__file__).parent / "checkpoints" / "paper.safetensors" if name == "paper" else Path(name)
    if path.is_dir() and not (path / "config.json").exists():
        path = path / "model.safetensors"
        if not path.exists():
            raise BadCheckpoint(f"The folder {name!r} holds no model: neither model.safetensors nor config.json.")
    if path.is_file():
        if precision != "float32":
            raise BadInput(f"Only Hugging Face models have a choice of precision; {precision!r} was given.")
        model = load_transformer(path) if holds_transformer(path) else SingleLayer.load(path)
        try:
            model.network.to(device)
        except (RuntimeError, AssertionError) as error:
            raise BadInput(f"The device {device!r} cannot be used: {str(error).splitlines()[0]}") from None
        return model
    return _hugging_face().load_pretrained(name, device, precision)


def wrap(
    model: Any,
    tokenizer: Any = None,
    *,
    classes: Sequence[str] | None = None,
    unknown: int = 0,
    replacement: str = "[UNK]",
) -> Model:
    """A model that is already in memory.

    A Hugging Face model with its tokenizer or image processor; a torch module that makes logits of token numbers, with
    a function from a text to its tokens, each (number, start, end), and `unknown`, the number that stands in for a
    removed token; a pipeline of transformers, which is opened for its model, so that attention and gradients can be
    seen; a classifier of scikit-learn that takes texts, such as a pipeline with its vectoriser; or any function
    `list of texts -> scores`, whose removed words become `replacement`.
    """
    from torch.nn import Module

    if is_pipeline(model):
        model, tokenizer = parts_of(model)
    if isinstance(model, Module):
        if any(kind.__name__ == "PreTrainedModel" for kind in type(model).__mro__):
            return _hugging_face().wrap_pretrained(model, tokenizer)
        from heedful.models.torch_module import TorchModule

        if not callable(tokenizer):
            raise BadInput("A torch module is wrapped with a function from a text to its tokens (number, start, end).")
        splitter: Any = tokenizer
        return TorchModule(model, splitter, classes, unknown)
    from heedful.models.black_box import BlackBox

    if is_estimator(model):
        scores, names = function_of(model)
        return BlackBox(scores, names if classes is None else classes, replacement)
    if not callable(model):
        raise BadInput(f"A model, a module or a function can be wrapped; {type(model).__name__} was given.")
    return BlackBox(model, classes, replacement)


def _hugging_face() -> ModuleType:
    try:
        return import_module("heedful.models.hf.load")
    except ImportError as error:
        raise MissingPackage(
            "Hugging Face models need transformers and pillow, the extra [hf]; `make install` brings them."
        ) from error
