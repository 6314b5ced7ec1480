"""The question an explainer answers: which scalar, model and documents; and the results that explainers share."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import SPECIAL, Absence, Document, Unit
from heedful.errors import BadInput, Unsupported
from heedful.models import Attending, Differentiable, Model, SharedSlopes, check_model
from heedful.models.attention_hook import still
from heedful.models.budget import PASS_MEMORY, Budget
from heedful.models.pooling import Pooling, PoolingModel, linear_values
from heedful.models.recording import Recordable, Recording, read_rows, record, rounding
from heedful.models.target_gradient import gradient_at, target_values
from heedful.target import Scale, Target, check_request, check_scale, resolve_target

T = TypeVar("T")
Request = int | str | Target | None
"""A target as a user specifies it: a class by number or name, or None for the predicted class."""
Baseline = Literal["zero", "unknown"]
"""The baseline of a text: embeddings of zero, or every word the unknown or mask token."""
Input = Any
"""An input to explain: a text, a `Pair` of texts, or for a model of images a file, an image or an array."""


@final
class Wanted(NamedTuple):
    """The target as the user specified it."""

    request: Request = None
    against: int | str | None = None
    scale: Scale = "logit"


@final
class Gradient(NamedTuple):
    """Embeddings, the target's gradient at each, Eq. (12), padding included, and its relative error by rounding."""

    embeddings: Float[np.ndarray, "batch token d_e"]
    gradients: Float[np.ndarray, "batch token d_e"]
    rounding: float


@final
@dataclass(eq=False)
class MaskValues:
    """The target's values on the masks evaluated so far, so that no mask is evaluated twice.

    `n_requested` counts the masks that were requested, `n_evaluated` those that the model evaluated, in `seconds`; the
    others would have taken `seconds_saved`.
    """

    values: dict[tuple[Document, Unit, Absence, Target], dict[bytes, float]] = field(default_factory=dict)
    n_requested: int = 0
    n_evaluated: int = 0
    seconds: float = 0.0
    seconds_saved: float = 0.0
    half: bool | None = None
    """Whether masks are evaluated in half precision; None until that has been measured."""


@final
@dataclass(eq=False)
class SharedResults:
    """Results for some documents of a model, each stored under a key that names everything it depends on."""

    model: Model
    documents: tuple[Document, ...]
    results: dict[Hashable, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each shared pass took."""

    def holds_for(self, model: Model, documents: tuple[Document, ...]) -> bool:
        """Whether these are the same model and document objects."""
        same = len(documents) == len(self.documents) and all(map(lambda a, b: a is b, documents, self.documents))
        return same and model is self.model


@final
@dataclass(eq=False)
class Question:
    """Which scalar of which model on which documents; results that several explainers need are computed here once.

    Whichever pass runs first also gives the logits, and with them the predicted class: no method needs an extra pass.
    `dataclasses.replace` keeps the results that are still valid: those of the same model and documents.
    """

    model: Model
    documents: tuple[Document, ...]
    wanted: Wanted
    budget: Budget = field(default_factory=Budget)
    mask_values: MaskValues | None = None
    """The cache of values at masks; None if each method evaluates its own masks."""
    shared: SharedResults | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.shared is None or not self.shared.holds_for(self.model, self.documents):
            self.shared = SharedResults(self.model, self.documents)

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result of `compute`, computed once; the key names everything it depends on except model and documents."""
        results = self._shared.results
        if key not in results:
            results[key] = compute()
        return results[key]

    @property
    def seconds(self) -> dict[str, float]:
        """How long each shared pass took."""
        return self._shared.seconds

    @property
    def logits(self) -> Float[np.ndarray, "batch class"]:
        """The logits of every document."""
        return self.once("logits", lambda: _finite(self.model.logits(self.documents)))

    @property
    def targets(self) -> tuple[Target, ...]:
        """The target of every document; the predicted class where none was named."""
        return self.once(("targets", self.wanted), lambda: tuple(map(self._target, self.documents, self.logits)))

    @property
    def weights(self) -> Float[np.ndarray, "batch class"]:
        """Each target as a row c with target = c · logits."""
        return np.stack([target.weights(len(self.model.classes)) for target in self.targets])

    @property
    def attention(self) -> Float[np.ndarray, "batch layer head key"]:
        """The attention of the positions that are read out, in every layer."""
        return self.once("attention", self._attention)

    @property
    def recording(self) -> Recording:
        """The inputs of every attention layer, from one forward pass."""
        return self.once("recording", self._recording)

    @property
    def gradient(self) -> Gradient:
        """The embeddings of every document and the target's gradient there."""
        return self.once(("gradient", self.wanted), lambda: self._timed("gradients", self._gradient))

    def pooling(self, absence: Absence, targets: Float[np.ndarray, "batch class"] | None = None) -> Pooling:
        """Scores and values that attention pools in every document, for its target or another row c."""
        return self._pool(self.documents, self.weights if targets is None else targets, absence)

    def only(self, index: Sequence[int]) -> "Question":
        """The same question about some of its documents, by index."""
        some = replace(self, documents=tuple(self.documents[i] for i in index))
        some.once("logits", lambda: self.logits[list(index)])
        return some

    def masked(
        self, index: int, keep: Bool[np.ndarray, "mask token"], absence: Absence, at_once: int | None = None
    ) -> Float[np.ndarray, "mask"]:
        """The target of one document at masks over its tokens."""
        model, document, target = self.model, self.documents[index], self.targets[index]
        if not isinstance(model, PoolingModel):
            return model.masked(document, target, keep, absence, at_once)

        def evaluate(row: Float[np.ndarray, "class"]) -> Float[np.ndarray, "mask"]:
            key = "evaluator", document, row.tobytes(), absence
            return self.once(key, lambda: model.evaluator(document, row, absence, self._pool))(keep)

        return linear_values(target, len(model.classes), evaluate)

    @property
    def recordable(self) -> Recordable:
        """The model, whose attention layers can be recorded."""
        assert isinstance(self.model, Recordable)
        return self.model

    @property
    def differentiable(self) -> Differentiable:
        """The model, whose gradients can be computed."""
        assert isinstance(self.model, Differentiable)
        return self.model

    def slopes(
        self, index: Sequence[int], embeddings: Float[Tensor, "row token d_e"]
    ) -> tuple[Float[Tensor, "row"], Float[Tensor, "row token d_e"]]:
        """The targets of some documents, by index, and their gradients at the given embeddings."""
        documents, targets = [self.documents[i] for i in index], [self.targets[i] for i in index]
        with torch.enable_grad(), self.still():
            if isinstance(self.model, SharedSlopes) and targets[0].is_one_output and len(set(index)) == 1:
                return self.model.slopes(targets[0].index, embeddings, documents[0])
            e = embeddings.detach().requires_grad_()
            f = target_values(targets, self.differentiable.forward(e, documents))
            return f.detach(), gradient_at(f, e)

    def at_once(self, n_tokens: int) -> int:
        """The number of documents of that length that fit into a pass."""
        return max(1, PASS_MEMORY // self.model.bytes_a_document(n_tokens)) if isinstance(self.model, Recordable) else 1

    def embedded(self, index: int) -> Float[Tensor, "1 token d_e"]:
        """The embeddings of one document, padded to its own length whatever the others are."""
        with torch.no_grad():
            return self.differentiable.embed(self.documents[index : index + 1])

    def baseline(self, index: int, baseline: Baseline) -> Float[Tensor, "1 token d_e"]:
        """The baseline of one document's embeddings: zeros, or its words replaced."""
        with torch.no_grad():
            if baseline == "zero":
                return torch.zeros_like(self.embedded(index))
            return self.differentiable.absent(self.documents[index : index + 1])

    def learn(self, logits: Float[Tensor, "batch class"]) -> None:
        """Stores the logits of a pass that was run for another result."""
        self.once("logits", lambda: _finite(logits.double().cpu().numpy()))

    def still(self) -> AbstractContextManager[None]:
        """Inside this context there is no dropout and no weight has a gradient."""
        if not isinstance(self.model, Recordable):
            return nullcontext()
        if any(type(module).__module__.startswith("torch.ao.") for module in self.model.network.modules()):
            # Some gradient would still flow through skip connections, and it would be wrong without a warning.
            raise Unsupported("No gradient flows through a quantised model; attention and perturbation methods work.")
        return still(self.model.network)

    def _target(self, document: Document, row: Float[np.ndarray, "class"]) -> Target:
        wanted, names = self.wanted, self.model.target_names(document)
        return resolve_target(wanted.request, wanted.against, names, row, wanted.scale, self.model.returns)

    def _attention(self) -> Float[np.ndarray, "batch layer head key"]:
        model = self.model
        if isinstance(model, Recordable):
            read = self.recording
            return self._timed("attention", lambda: read_rows(model, self.documents, read).cpu().numpy())
        assert isinstance(model, Attending)
        return self._timed("attention", lambda: model.attention(self.documents))

    def _recording(self) -> Recording:
        recording = self._timed("layers", lambda: record(self.recordable, self.documents))
        self.learn(recording.logits)
        return recording

    def _gradient(self) -> Gradient:
        model = self.differentiable
        if isinstance(model, SharedSlopes) and len(self.documents) == 1:
            e = self.embedded(0)
            return Gradient(e.double().cpu().numpy(), self.slopes([0], e)[1].double().cpu().numpy(), rounding(e.dtype))
        with torch.enable_grad(), self.still():
            e = model.embed(self.documents).detach().requires_grad_()
            logits = model.forward(e, self.documents)
            self.learn(logits.detach())
            gradient = gradient_at(target_values(self.targets, logits), e)
        return Gradient(e.detach().double().cpu().numpy(), gradient.double().cpu().numpy(), rounding(gradient.dtype))

    def _pool(
        self, documents: Sequence[Document], targets: Float[np.ndarray, "batch class"], absence: Absence
    ) -> Pooling:
        model = self.model
        assert isinstance(model, PoolingModel)
        key = "pooling", tuple(documents), targets.tobytes(), absence
        return self.once(key, lambda: model.pooling(documents, targets, absence))

    @property
    def _shared(self) -> SharedResults:
        assert self.shared is not None
        return self.shared

    def _timed(self, name: str, compute: Callable[[], T]) -> T:
        start, value = perf_counter(), compute()
        self.seconds[name] = perf_counter() - start
        return value


def _finite(logits: Float[np.ndarray, "batch class"]) -> Float[np.ndarray, "batch class"]:
    if not np.isfinite(logits).all():
        raise BadInput("The model's output for this text is not a finite number; check its weights.")
    return logits


def ask(
    model: Model,
    texts: Sequence[Input],
    target: Request = None,
    against: int | str | None = None,
    scale: Scale = "logit",
    budget: Budget = Budget(),  # noqa: B008
) -> Question:
    """The question behind `explain` and `compare`, after checks of model, texts and target."""
    check_model(model)
    check_scale(scale, model.returns, model.outputs)
    documents = tuple(model.encode(text) for text in texts)
    for document in documents:
        if (document.words == SPECIAL).all() or (document.picture is None and not "".join(document.word_texts).strip()):
            raise BadInput("The text contains no words; give at least one.")
        if not document.known[document.words >= 0].any():
            first = repr(document.word_texts[0][:40])
            raise BadInput(f"All words of the text are unknown to the model ({first} …); give some known words.")
        if target is not None or against is not None:
            check_request(target, against, model.target_names(document))
    return Question(model, documents, Wanted(target, against, scale), budget)
