"""What is asked of an explainer: which scalar, of which model, on which documents; and what several of them share."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document import SPECIAL, Absence, Document, Unit
from heedful.errors import BadInput, Unsupported
from heedful.models import Model
from heedful.models.attention_hook import still
from heedful.models.budget import PASS_MEMORY, Budget
from heedful.models.layered import LayeredModel, Listened, Recording, read_rows, record, values
from heedful.target import Scale, Target, check_request, check_scale, resolve_target

T = TypeVar("T")
Request = int | str | Target | None
"""A target as a user names it: a class by number or name, or None for the predicted one."""
Baseline = Literal["zero", "unknown"]
"""What a text is compared with: embeddings of zero, or every word the unknown or mask token."""
Input = Any
"""What is explained: a text, a `Pair` of texts, or for a model of pictures a file, an image or an array."""


@final
class Wanted(NamedTuple):
    """The target as a user asked for it."""

    request: Request = None
    against: int | str | None = None
    scale: Scale = "logit"


@final
class Gradient(NamedTuple):
    """Every embedding and the target's gradient there, Eq. (12), special tokens and padding included."""

    embeddings: Float[np.ndarray, "batch token d_e"]
    gradients: Float[np.ndarray, "batch token d_e"]


@final
@dataclass(eq=False)
class MaskValues:
    """The target's values at masks evaluated so far, so that no mask is evaluated twice.

    `n_requested` counts the masks that were requested, `n_evaluated` those that the model had to evaluate.
    """

    values: dict[tuple[int, Unit, Absence, Target], dict[bytes, float]] = field(default_factory=dict)
    n_requested: int = 0
    n_evaluated: int = 0
    half: bool | None = None
    """Whether masks are evaluated in half precision; None until that has been measured."""


@final
@dataclass(frozen=True, eq=False)
class Question:
    """Which scalar of which model on which documents; what several explainers need is computed here, once.

    Whichever pass is run first also gives the logits, and with them the predicted class: no method pays for a forward
    pass that it does not need itself.
    """

    model: Model
    documents: tuple[Document, ...]
    wanted: Wanted
    budget: Budget = field(default_factory=Budget)
    seconds: dict[str, float] = field(default_factory=dict)
    mask_values: MaskValues | None = None
    """Where values at masks are kept for others, if they are."""

    @cached_property
    def logits(self) -> Float[np.ndarray, "batch class"]:
        return _finite(self.model.logits(self.documents))

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        request, against, scale = self.wanted
        return tuple(resolve_target(request, against, self.model.classes, row, scale) for row in self.logits)

    @cached_property
    def weights(self) -> Float[np.ndarray, "batch class"]:
        """Each target as a row c with target = c · logits."""
        return np.stack([target.weights(len(self.model.classes)) for target in self.targets])

    @cached_property
    def attention(self) -> Float[np.ndarray, "batch layer head key"]:
        """The attention of what is read out, in every layer."""
        if not isinstance(self.model, LayeredModel):
            return self._timed("attention", lambda: self.model.attention(self.documents))
        model, recording = self.model, self.recording
        return self._timed("attention", lambda: read_rows(model, self.documents, recording).cpu().numpy())

    @cached_property
    def recording(self) -> Recording:
        """What every attention layer was given, in one forward pass."""
        recording = self._timed("layers", lambda: record(self.listened, self.documents))
        self.learn(recording.logits)
        return recording

    @cached_property
    def gradient(self) -> Gradient:
        return self._timed("gradients", self._gradient)

    @property
    def listened(self) -> Listened:
        assert isinstance(self.model, Listened)
        return self.model

    def slopes(
        self, index: Sequence[int], embeddings: Float[Tensor, "row token d_e"]
    ) -> tuple[Float[Tensor, "row"], Float[Tensor, "row token d_e"]]:
        """The targets of documents, named by their number, and their gradients, at other embeddings than theirs."""
        documents, targets = [self.documents[i] for i in index], [self.targets[i] for i in index]
        with torch.enable_grad(), self.still():
            e = embeddings.detach().requires_grad_()
            f = values(targets, self.model.forward(e, documents))
            return f.detach(), slope_of(f, e)

    def at_once(self, n_tokens: int) -> int:
        """How many documents of that length a pass may hold."""
        return max(1, PASS_MEMORY // self.model.bytes_a_document(n_tokens)) if isinstance(self.model, Listened) else 1

    def embedded(self, index: int) -> Float[Tensor, "1 token d_e"]:
        """The embeddings of one document, as long as it is itself whatever the others are."""
        with torch.no_grad():
            return self.model.embed(self.documents[index : index + 1])

    def baseline(self, index: int, baseline: Baseline) -> Float[Tensor, "1 token d_e"]:
        """Where the way to one document's embeddings begins."""
        with torch.no_grad():
            document = self.documents[index : index + 1]
            return torch.zeros_like(self.embedded(index)) if baseline == "zero" else self.model.absent(document)

    def _gradient(self) -> Gradient:
        with torch.enable_grad(), self.still():
            e = self.model.embed(self.documents).detach().requires_grad_()
            logits = self.model.forward(e, self.documents)
            self.learn(logits.detach())
            gradient = slope_of(values(self.targets, logits), e)
        return Gradient(e.detach().double().cpu().numpy(), gradient.double().cpu().numpy())

    def learn(self, logits: Float[Tensor, "batch class"]) -> None:
        """Takes the logits from a pass that was made for something else."""
        self.__dict__.setdefault("logits", _finite(logits.double().cpu().numpy()))

    def still(self) -> AbstractContextManager[None]:
        """For a gradient: while it lasts nothing drops out and no weight asks for one."""
        if not isinstance(self.model, Listened):
            return nullcontext()
        if any(type(module).__module__.startswith("torch.ao.") for module in self.model.network.modules()):
            # Through skip connections some gradient would still flow, and would be wrong without a word.
            raise Unsupported("No gradient flows through a quantised model; attention and perturbation methods work.")
        return still(self.model.network)

    def _timed(self, name: str, compute: Callable[[], T]) -> T:
        start = perf_counter()
        value = compute()
        self.seconds[name] = perf_counter() - start
        return value


def slope_of(f: Float[Tensor, "batch"], e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch token d_e"]:
    """∂f/∂e of every document; where no gradient flows the model is refused."""
    if not f.requires_grad:
        raise Unsupported("No gradient flows through this model, so gradient methods cannot explain it.")
    (gradient,) = torch.autograd.grad(f.sum(), e)
    if not gradient.isfinite().all():
        raise BadInput("The gradient for this text is not a finite number; in half precision, load the model in full.")
    return gradient


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
    """The question behind `explain` and `compare`, its model, texts and target checked."""
    if not isinstance(model, Model):
        raise BadInput(f"The first argument is a model, as heedful.load gives one; {type(model).__name__} was given.")
    check_scale(scale)
    documents = tuple(model.encode(text) for text in texts)
    for document in documents:
        if (document.words == SPECIAL).all() or (document.picture is None and not "".join(document.word_texts).strip()):
            raise BadInput("The text holds no word, so there is nothing to explain; give at least one.")
        if not document.known[document.words >= 0].any():
            first = document.word_texts[0][:40]
            raise BadInput(f"The model knows none of the text's words ({first!r} …), so it cannot tell them apart.")
    if target is not None or against is not None:
        check_request(target, against, model.classes)
    return Question(model, documents, Wanted(target, against, scale), budget)
