"""The contracts of models: what every model does, what one with gradients does, and what one with attention does."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Absence, Document
from heedful.document.note import Note
from heedful.errors import BadInput, Unsupported, in_short
from heedful.target import ClassNames, Names, Returns, Target

Offer = Literal["masks", "gradients", "attention", "layers", "weights", "pooling", "text"]
"""What a model may offer: its output on masked texts, gradients at its embeddings, the attention of the positions that
are read out, recordings of every attention layer, the weights of the paper's model, what its attention pools, text
that it writes."""
_SHOWN: tuple[Offer, ...] = ("attention", "gradients", "masks", "pooling")
_SINGLE = {"probabilities": "probability", "scores": "score"} | dict.fromkeys(
    ("logits", "independent-logits"), "logit, whose sigmoid is a probability"
)
_MANY, _LONGEST = 1000, 298


class Model(ABC):
    """Maps documents to one number per class: all that perturbation methods need."""

    provides: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    """The offers that a model gains by implementing this class."""
    family: str = ""
    """What kind of model it is, for `description`; empty for the name of its class."""
    reads: str = ""
    """The positions that the outputs are read from; empty if that is not known."""
    outputs: str = "classes"
    """What there is one output for."""
    classes: tuple[str, ...]
    fingerprint: str
    """A hash of the weights, kept with every explanation."""
    returns: Returns = "logits"
    """What the numbers of `predict` and `logits` are."""
    withheld: Mapping[Offer, str] = MappingProxyType({})
    """Offers of its class that this model does not have, each with the reason."""
    probe_forwards: int = 0
    """Forward passes that were made once, when the model was wrapped, to probe it."""
    gold: tuple[str, ...] = ()
    """The words that it is known to use, and no others; empty if that is not known."""
    note_of_zero: Note | None = None
    """A note for explanations of an output that is exactly 0."""
    about_labels: str = ""
    """Why labels of texts are not used, as the end of a sentence; empty if they name classes."""

    @property
    def offers(self) -> frozenset[Offer]:
        """What the classes of this model provide, less what is withheld."""
        provided: list[frozenset[Offer]] = [vars(kind).get("provides", frozenset()) for kind in type(self).__mro__]
        return frozenset(offer for some in provided for offer in some if offer not in self.withheld)

    @property
    def description(self) -> str:
        """One line of at most 300 characters: the family, what is read, returned and offered, what is not, and why."""
        n, names = len(self.classes), ", ".join(name[:30] for name in self.classes[:4])
        listed = f" ({names}{', …' if n > 4 else ''})" if n < _MANY else ""
        returned = f"{self.returns} of {n:,} {self.outputs}" if n > 1 else f"a single {_SINGLE[self.returns]}"
        family = self.family or type(getattr(self, "network", self)).__name__
        parts = [family if self.fingerprint == "function" else f"{family} {self.fingerprint}"]
        parts += [f"read from {self.reads}"] if self.reads else []
        parts += [f"returns {returned}{listed}", f"offers {', '.join(o for o in _SHOWN if o in self.offers)}"]
        for reason in dict.fromkeys(self.withheld.values()):
            missing = [offer for offer in _SHOWN if self.withheld.get(offer) == reason]
            parts += [f"no {', no '.join(missing)}: {reason}"] if missing else []
        line = "; ".join(parts)
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"

    def __repr__(self) -> str:
        return f"<{self.description}>"

    @abstractmethod
    def encode(self, text: Any) -> Document:
        """The text, pair or image as this model reads it."""

    @abstractmethod
    def predict(self, texts: Sequence[Any]) -> Float[np.ndarray, "batch class"]:
        """The logits of every text, computed the fastest way."""

    @abstractmethod
    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        """The logits of every document."""

    @abstractmethod
    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        at_once: int | None = None,
    ) -> Float[np.ndarray, "mask"]:
        """The target at every mask over tokens, at most `at_once` in a pass; special tokens must be kept."""

    @abstractmethod
    def masks_at_once(self, document: Document, memory: int | None) -> int:
        """The number of masks to evaluate in one pass, within a memory limit in bytes or the default limit."""

    def target_names(self, document: Document | None) -> Names:  # noqa: ARG002
        """How the classes are named in a document; next tokens depend on the text before them."""
        return ClassNames(self.classes)

    def __call__(self, texts: Sequence[Any]) -> Float[np.ndarray, "batch class"]:
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise BadInput('A model takes a list of texts; call model(["a text"]).')
        return self.predict(texts)


class Differentiable(Model):
    """A model f = g ∘ e whose gradients at its embeddings can be computed."""

    provides: ClassVar[frozenset[Offer]] = frozenset({"gradients"})

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
        """g: logits from those vectors, in the places of the documents' tokens; differentiable."""


class SharedSlopes(Differentiable):
    """A model with many outputs whose gradients at the same embeddings come from the same passes."""

    @abstractmethod
    def slopes(
        self, index: int, embeddings: Float[Tensor, "row token d_e"], document: Document
    ) -> tuple[Float[Tensor, "row"], Float[Tensor, "row token d_e"]]:
        """One output at some embeddings of a document, and its gradient there."""


class Attending(Model):
    """A model whose attention weights are available."""

    provides: ClassVar[frozenset[Offer]] = frozenset({"attention"})

    @abstractmethod
    def attention(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch layer head key"]:
        """Attention of the positions that are read out, for every layer and head."""

    @abstractmethod
    def maps(self, document: Document) -> Float[np.ndarray, "layer head query key"]:
        """The whole attention matrices over the document's own tokens."""


class AtPlace(ABC):
    """A model whose output is read at a place of the text, which the target names."""

    @abstractmethod
    def aimed(self, target: Any, against: object) -> tuple[Model, Any]:
        """The model with its outputs read at the place that was named, and which of them is explained."""


class TargetOfModel(ABC):
    """A target that is no output of a model: it is explained as the one output of another model, made from it."""

    @abstractmethod
    def model_for(self, model: Model) -> Model:
        """The model whose single output it is; a model that it does not belong to is refused."""


def model_and_target(model: Model, target: Any, against: object = None, scale: object = "logit") -> tuple[Model, Any]:
    """The model that is explained, and which of its outputs; `explain`, `compare`, `trust` and `read` begin with it."""
    if isinstance(target, list | tuple) and any(isinstance(one, TargetOfModel) for one in target):
        raise BadInput("A feature is the target of all texts; give it alone, and call once for each feature.")
    if isinstance(model, AtPlace) and not isinstance(target, TargetOfModel | Target):
        return model.aimed(target, against)
    if not isinstance(target, TargetOfModel):
        return model, target
    check_model(model)
    if against is not None or scale != "logit":
        raise BadInput("A feature has no other class and no probability; leave `against` and `scale` out.")
    made = target.model_for(model)
    return made, made.classes[0]


def check_model(model: object) -> None:
    """Refuses an argument that is not a model, and says how to make it one."""
    if isinstance(model, Model):
        return
    kinds = {kind.__name__ for kind in type(model).__mro__}
    needed = "The first argument must be a model from heedful.load or heedful.wrap"
    if isinstance(model, str):
        hint = "Texts come second." if " " in model else f"Load a model by its name: heedful.load({model[:60]!r})."
        raise BadInput(f"{needed}; {in_short(model)} was given. {hint}")
    if kinds & {"PreTrainedModel", "Module"}:
        raise BadInput(f"{needed}; {type(model).__name__} was given. Wrap it: heedful.wrap(model, tokenizer).")
    if kinds & {"BaseEstimator", "Pipeline"} or callable(model):
        raise BadInput(f"{needed}; {type(model).__name__} was given. Wrap it: heedful.wrap(model).")
    raise BadInput(f"{needed}; {type(model).__name__} was given.")


def check_offers(model: Model, needs: Iterable[Offer], name: str) -> None:
    """Refuses a method or metric that needs what the model does not offer, and says why."""
    missing = sorted(set(needs) - model.offers)
    if missing:
        reasons = dict.fromkeys(model.withheld[offer] for offer in missing if offer in model.withheld)
        sentence = f"needs {', '.join(missing)}, which this model does not offer."
        raise Unsupported(" ".join([sentence, *reasons]), name)
