"""The contract of every explainer, and `explain`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, overload

import numpy as np
from jaxtyping import Float

from heedful import catalog
from heedful.aggregate import unit_scores
from heedful.document import Pair, Unit
from heedful.errors import Unsupported, unknown_name
from heedful.explanation import Explanation
from heedful.models import Model, Offer
from heedful.models.layered import Listened, portions
from heedful.perturb.means import mean_of
from heedful.question import Input, Question, Request, ask
from heedful.settings import build, shares
from heedful.target import Scale

Progress = Callable[[int, int], None]
"""Told how many texts are done, and of how many."""

OPT_IN = frozenset({"relevance-attention"})
"""Methods that `compare` uses only if they are named."""

_BATCH = 128


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
            output=float(question.targets[index].of(question.logits[index : index + 1])[0]),
            method=self.name,
            signed=self.signed,
            settings=asdict(self),
            error=error,
            facts=facts,
            model=question.model.fingerprint,
        )

    def from_tokens(
        self,
        question: Question,
        rows: Float[np.ndarray, "batch token"],
        facts: Mapping[str, int | float],
        errors: Float[np.ndarray, "batch token"] | None = None,
    ) -> list[Explanation]:
        """Explanations from one number a token: summed over each unit, special tokens and padding apart.

        Without `errors` nothing was sampled. The half-width of a sum is at most the sum of its parts'.
        """
        explanations = []
        for index, (document, row) in enumerate(zip(question.documents, rows, strict=True)):
            scores, apart = unit_scores(document, self.unit, row)
            error = np.zeros_like(scores) if errors is None else unit_scores(document, self.unit, errors[index])[0]
            explanations.append(self.explanation(question, index, scores, error, {**apart, **facts}))
        return explanations

    def from_passes(self, question: Question, index: int, draws: Float[np.ndarray, "draw token"]) -> Explanation:
        """The mean of draws, each a forward and a backward pass, with intervals at the unit asked for."""
        scored = [unit_scores(question.documents[index], self.unit, row) for row in draws]
        scores, error = mean_of(np.stack([scores for scores, _ in scored]))
        apart = {name: float(np.mean([others.get(name, 0.0) for _, others in scored])) for name in scored[0][1]}
        spent = dict.fromkeys(("forwards", "backwards", "effective_samples"), len(draws))
        return self.explanation(question, index, scores, error, {**apart, **spent})


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


def answer(explainer: Explainer, question: Question) -> list[Explanation]:
    """Runs one explainer; each explanation's `seconds` count what it shares with others as if it were alone."""
    missing = sorted(explainer.needs - question.model.offers)
    if missing:
        raise Unsupported(f"{explainer.name} needs {', '.join(missing)}, which this model does not offer.")
    if any(document.picture is not None for document in question.documents) and explainer.unit == "word":
        explainer = replace(explainer, unit="patch")
    shared = sum(question.seconds.values())
    start = perf_counter()
    explanations = explainer.explain_batch(question)
    own = perf_counter() - start - (sum(question.seconds.values()) - shared)
    used = {*explainer.needs, "layers"} if "attention" in explainer.needs else explainer.needs
    seconds = own + sum(question.seconds.get(need, 0.0) for need in used)
    each = seconds / len(explanations)
    return [replace(explanation, facts={**explanation.facts, "seconds": each}) for explanation in explanations]


@overload
def explain(
    model: Model,
    text: str | Pair,
    method: str = ...,
    *,
    target: Request = ...,
    against: int | str | None = ...,
    scale: Scale = ...,
    progress: Progress = ...,
    **settings: object,
) -> Explanation: ...
@overload
def explain(
    model: Model,
    text: list[Any] | tuple[Any, ...],
    method: str = ...,
    *,
    target: Request = ...,
    against: int | str | None = ...,
    scale: Scale = ...,
    progress: Progress = ...,
    **settings: object,
) -> list[Explanation]: ...
@overload
def explain(
    model: Model,
    text: Input,
    method: str = ...,
    *,
    target: Request = ...,
    against: int | str | None = ...,
    scale: Scale = ...,
    progress: Progress = ...,
    **settings: object,
) -> Any: ...
def explain(
    model: Model,
    text: Input,
    method: str = "lime",
    *,
    target: Request = None,
    against: int | str | None = None,
    scale: Scale = "logit",
    progress: Progress = lambda *_: None,
    **settings: object,
) -> Any:
    """Explains a text, or each of a list of texts, by one method.

    `target` is a class by number or name (of a language model: the next token), None the predicted one; with `against`
    the difference of two; `scale="log-probability"` asks for log-probabilities instead of logits. A pair of texts is a
    `heedful.Pair`. Every other keyword is a setting of the method: `unit`, and what `heedful.methods()[method]` lists.
    """
    explainer = configure(method, settings)
    if not isinstance(text, list | tuple):
        return answer(explainer, ask(model, [text], target, against, scale))[0]
    explanations: list[Explanation] = []
    for start in range(0, len(text), _BATCH):
        question = ask(model, text[start : start + _BATCH], target, against, scale)
        batches = portions(model, question.documents) if isinstance(model, Listened) else [question.documents]
        for documents in batches:
            explanations += answer(explainer, replace(question, documents=tuple(documents), seconds={}))
            progress(len(explanations), len(text))
    return explanations
