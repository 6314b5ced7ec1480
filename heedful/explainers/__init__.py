"""The contract of every explainer, the question they all answer, and `explain`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, TypeVar, final, overload

import numpy as np
import torch
from jaxtyping import Float

from heedful import catalog
from heedful.document import SPECIAL, Document, Unit
from heedful.errors import BadInput, Unsupported, unknown_name
from heedful.explanation import Explanation
from heedful.models import Model, Offer
from heedful.settings import build, shares
from heedful.target import Target, resolve_target

T = TypeVar("T")
Request = int | str | Target | None
"""A target as a user names it: a class by number or name, or None for the predicted one."""
Progress = Callable[[int, int], None]
"""Told how many texts are done, and of how many."""


_BATCH = 128


@final
class Gradient(NamedTuple):
    """Every embedding and the target's gradient there, Eq. (12), special tokens and padding included."""

    embeddings: Float[np.ndarray, "batch token d_e"]
    gradients: Float[np.ndarray, "batch token d_e"]


@final
@dataclass(frozen=True, eq=False)
class Question:
    """Which scalar of which model on which documents; what several explainers need is computed here, once."""

    model: Model
    documents: tuple[Document, ...]
    targets: tuple[Target, ...]
    logits: Float[np.ndarray, "batch class"]
    seconds: dict[str, float] = field(default_factory=dict)

    @cached_property
    def weights(self) -> Float[np.ndarray, "batch class"]:
        """Each target as a row c with target = c · logits."""
        return np.stack([target.weights(len(self.model.classes)) for target in self.targets])

    @cached_property
    def attention(self) -> Float[np.ndarray, "batch layer head key"]:
        return self._timed("attention", lambda: self.model.trace(self.documents).attention)

    @cached_property
    def gradient(self) -> Gradient:
        return self._timed("gradients", self._gradient)

    def _gradient(self) -> Gradient:
        with torch.enable_grad():
            e = self.model.embed(self.documents).detach().requires_grad_()
            f = (self.model.forward(e) * torch.from_numpy(self.weights).to(e)).sum()
            (gradient,) = torch.autograd.grad(f, e)
        return Gradient(e.detach().double().cpu().numpy(), gradient.double().cpu().numpy())

    def _timed(self, name: str, compute: Callable[[], T]) -> T:
        start = perf_counter()
        value = compute()
        self.seconds[name] = perf_counter() - start
        return value


@dataclass(frozen=True)
class Explainer(ABC):
    """A way to give every unit of a document one number. Its fields are its settings."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[Offer]]
    signed: ClassVar[bool]

    unit: Unit = "word"

    @abstractmethod
    def explain_batch(self, question: Question) -> list[Explanation]:
        """An explanation for each document of the question."""

    def explanation(
        self,
        question: Question,
        index: int,
        scores: Float[np.ndarray, "unit"],
        error: Float[np.ndarray, "unit"] | None,
        facts: Mapping[str, int | float],
    ) -> Explanation:
        """The explanation of one of the question's documents, with its provenance."""
        return Explanation(
            document=question.documents[index],
            target=question.targets[index],
            unit=self.unit,
            scores=scores,
            output=float(question.logits[index] @ question.weights[index]),
            method=self.name,
            signed=self.signed,
            settings=asdict(self),
            error=error,
            facts=facts,
            model=question.model.fingerprint,
        )


def methods() -> dict[str, type[Explainer]]:
    """Every explainer, by its catalogue name."""
    import heedful.explainers as family

    return catalog.members(family, Explainer)


def settings_of(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """For each method named those of the settings that it has; a method or setting that does not exist is refused."""
    known, wanted = methods(), list(names)
    for name in wanted:
        if name not in known:
            raise unknown_name("method", name, known)
    return dict(zip(wanted, shares(settings, [known[name] for name in wanted]), strict=True))


def configure(method: str, settings: Mapping[str, Any]) -> Explainer:
    """The explainer of that name with those settings."""
    own = settings_of([method], settings)[method]
    return build(methods()[method], method, own)


def ask(
    model: Model,
    texts: Sequence[str],
    target: Request = None,
    against: int | str | None = None,
) -> Question:
    """The question behind `explain` and `compare`, its model, texts and target checked."""
    if not isinstance(model, Model):
        raise BadInput(f"The first argument is a model, as heedful.load gives one; {type(model).__name__} was given.")
    for text in texts:
        if not isinstance(text, str):
            raise BadInput(f"A text is a string; {type(text).__name__} was given.")
        if "\0" in text:
            raise BadInput(f"The text holds a NUL character at position {text.index(chr(0))}; is it a binary file?")
    documents = tuple(model.encode(text) for text in texts)
    for document in documents:
        if (document.words == SPECIAL).all():
            raise BadInput("The text holds no word, so there is nothing to explain; give at least one.")
        if not document.known[document.words >= 0].any():
            first = document.word_texts[0]
            raise BadInput(f"The model knows none of the text's words ({first!r} …), so it cannot tell them apart.")
    logits = model.logits(documents)
    if not np.isfinite(logits).all():
        raise BadInput("The model's output for this text is not a finite number; check its weights.")
    targets = tuple(resolve_target(target, against, model.classes, row) for row in logits)
    return Question(model, documents, targets, logits)


def answer(explainer: Explainer, question: Question) -> list[Explanation]:
    """Runs one explainer; each explanation's `seconds` count what it shares with others as if it were alone."""
    missing = sorted(explainer.needs - question.model.offers)
    if missing:
        raise Unsupported(f"{explainer.name} needs {', '.join(missing)}, which this model does not offer.")
    shared = sum(question.seconds.values())
    start = perf_counter()
    explanations = explainer.explain_batch(question)
    own = perf_counter() - start - (sum(question.seconds.values()) - shared)
    seconds = own + sum(question.seconds.get(need, 0.0) for need in explainer.needs)
    each = seconds / len(explanations)
    return [replace(explanation, facts={**explanation.facts, "seconds": each}) for explanation in explanations]


@overload
def explain(
    model: Model,
    text: str,
    method: str = ...,
    *,
    target: Request = ...,
    against: int | str | None = ...,
    progress: Progress = ...,
    **settings: object,
) -> Explanation: ...
@overload
def explain(
    model: Model,
    text: list[str] | tuple[str, ...],
    method: str = ...,
    *,
    target: Request = ...,
    against: int | str | None = ...,
    progress: Progress = ...,
    **settings: object,
) -> list[Explanation]: ...
def explain(
    model: Model,
    text: str | list[str] | tuple[str, ...],
    method: str = "lime",
    *,
    target: Request = None,
    against: int | str | None = None,
    progress: Progress = lambda *_: None,
    **settings: object,
) -> Explanation | list[Explanation]:
    """Explains a text, or each of a list of texts, by one method.

    `target` is a class by number or name, None the predicted one; with `against` the difference of two classes' logits.
    Every other keyword is a setting of the method: `unit`, and what `heedful.methods()[method]` lists as its fields.
    """
    explainer = configure(method, settings)
    if not isinstance(text, str | list | tuple):
        raise BadInput(f"A text is a string; {type(text).__name__} was given.")
    if isinstance(text, str):
        return answer(explainer, ask(model, [text], target, against))[0]
    explanations: list[Explanation] = []
    for start in range(0, len(text), _BATCH):
        explanations += answer(explainer, ask(model, text[start : start + _BATCH], target, against))
        progress(len(explanations), len(text))
    return explanations
