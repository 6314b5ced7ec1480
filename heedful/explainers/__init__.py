"""The contract of every explainer, and `explain`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from time import perf_counter
from typing import Any, ClassVar, Literal, overload

import numpy as np
from jaxtyping import Float

from heedful import family
from heedful.document import Pair, Unit
from heedful.document.note import Note
from heedful.document.units import unit_scores
from heedful.errors import BadInput, Unsupported, unknown_name
from heedful.explanation import Explanation
from heedful.family import build, split_settings
from heedful.models import Model, Offer
from heedful.models.budget import Budget, Progress
from heedful.models.layered import Listened, portions
from heedful.models.question import Input, Question, Request, ask
from heedful.perturb.forecast import Forecast, as_time, forecast, planned
from heedful.perturb.rounds import FEWEST_MASKS
from heedful.statistics.intervals import mean_of_draws
from heedful.target import Scale

Announce = Callable[[Forecast], None]
"""Told what masks will cost, before they are asked."""

OPT_IN = frozenset({"relevance-attention"})
"""Methods that `compare` uses only if they are named."""

_BATCH = 128


@dataclass(frozen=True)
class Explainer(ABC):
    """A way to give every unit of a document one number. Its fields are its settings."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[Offer]]
    signed: ClassVar[bool]
    opt_in: ClassVar[bool] = False
    """Whether `compare` and `trust` use it only if it is named."""
    slow: ClassVar[bool] = False
    """Whether `trust` leaves it out unless it is named, because it takes far longer than the others."""
    removal: ClassVar[Literal["single", "joint"] | None] = None
    """Whether scores are losses of the target, in its own scale, when units are removed one at a time or together."""
    joint_rank: ClassVar[int | None] = None
    """Its place, 1 first, among the methods whose joint removal is compared with leave-one-out; None if it has none."""
    mean_attention: ClassVar[Literal["any depth", "one layer"] | None] = None
    """Whether scores are proportional to the mean attention over heads and layers, and of which models."""

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
            notes=question.documents[index].notes,
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
        scores, error = mean_of_draws(np.stack([scores for scores, _ in scored]))
        apart = {name: float(np.mean([others.get(name, 0.0) for _, others in scored])) for name in scored[0][1]}
        spent = dict.fromkeys(("forwards", "backwards", "effective_samples"), len(draws))
        return self.explanation(question, index, scores, error, {**apart, **spent})


def methods() -> dict[str, type[Explainer]]:
    """Every explainer, by its catalogue name."""
    return dict(family.members(__name__, Explainer))


def settings_of(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """For each method named those of the settings that it has; a method or setting that does not exist is refused."""
    known, wanted = methods(), list(names)
    for name in wanted:
        if name not in known:
            raise unknown_name("method", name, known)
    return dict(zip(wanted, split_settings(settings, [known[name] for name in wanted]), strict=True))


def configure(method: str, settings: Mapping[str, Any]) -> Explainer:
    """The explainer of that name with those settings."""
    own = settings_of([method], settings)[method]
    return build(methods()[method], method, own)


def answer(explainer: Explainer, question: Question) -> list[Explanation]:
    """Runs one explainer; each explanation's `seconds` count what it shares with others as if it were alone."""
    missing = sorted(explainer.needs - question.model.offers)
    if missing:
        raise Unsupported(f"{explainer.name} needs {', '.join(missing)}, which this model does not offer.")
    explainer = fitting(explainer, question)
    notes: tuple[Note, ...] = ()
    if question.budget.memory is not None or question.budget.seconds < inf:
        explainer, question, notes = within(explainer, question)
    shared = sum(question.seconds.values())
    start = perf_counter()
    try:
        explanations = explainer.explain_batch(question)
    except BadInput as error:
        if not notes:
            raise
        # What was lowered to fit may be why it does not work.
        raise BadInput(" ".join([str(error), *notes])) from None
    own = perf_counter() - start - (sum(question.seconds.values()) - shared)
    used = {*explainer.needs, "layers"} if "attention" in explainer.needs else explainer.needs
    seconds = own + sum(question.seconds.get(need, 0.0) for need in used)
    each = seconds / len(explanations)
    return [
        replace(explanation, facts={**explanation.facts, "seconds": each}).noted(notes) for explanation in explanations
    ]


def fitting(explainer: Explainer, question: Question) -> Explainer:
    """The explainer with patches for its units, if it is pictures that are explained and nothing else was said."""
    pictures = any(document.picture is not None for document in question.documents)
    return replace(explainer, unit="patch") if pictures and explainer.unit == "word" else explainer


def plan(explainers: Sequence[Explainer], question: Question) -> Forecast | None:
    """What explainers will cost on the longest of the documents; None if they ask no masks, or masks cost nothing.

    Their masks are those that their settings say: `n_samples`, at most `budget`, or one a unit.
    """
    asking = [one for one in explainers if "masks" in one.needs and hasattr(one, "absence")]
    if not asking or "pooling" in question.model.offers:
        return None
    index = max(range(len(question.documents)), key=lambda i: len(question.documents[i].ids))
    n_masks, bound = 0, False
    for one in asking:
        n_units = question.documents[index].n_units(one.unit)
        n_samples, budget = (getattr(one, name, None) for name in ("n_samples", "budget"))
        n_samples = "auto" if getattr(one, "until", "width") != "width" else n_samples
        open_end = n_samples == "auto" or (n_samples is None and budget is not None)
        wanted = budget if open_end else n_units + 1 if n_samples is None else n_samples
        n_masks, bound = n_masks + min(int(wanted or 0), 2 ** min(n_units, 40)), bound or open_end
    absence = str(getattr(asking[0], "absence", "replace"))
    return forecast(question, index, asking[0].unit, absence, n_masks, bound)


def within(explainer: Explainer, question: Question) -> tuple[Explainer, Question, tuple[Note, ...]]:
    """The explainer and the question with as many masks, in all and in a pass, as time and memory allow."""
    found, seconds = plan([explainer], question), question.budget.seconds
    if found is None:
        return explainer, question, ()
    question = planned(question, found)
    if found.seconds <= seconds:
        return explainer, question, ()
    setting = "budget" if found.bound else "n_samples"
    n_masks = found.affordable(seconds)
    if not hasattr(explainer, setting) or n_masks < FEWEST_MASKS:
        raise BadInput(
            f"{explainer.name} needs {found}; in {as_time(seconds)} no more than {n_masks:,} forwards can be made."
        )
    lowered = (
        f"{setting} is {n_masks:,} and not {getattr(explainer, setting):,}, to take no more than {as_time(seconds)}."
    )
    changed: dict[str, Any] = {setting: n_masks}
    return replace(explainer, **changed), question, (Note(lowered, "limited"),)


@overload
def explain(
    model: Model,
    text: str | Pair,
    method: str = ...,
    *,
    target: Request = ...,
    against: int | str | None = ...,
    scale: Scale = ...,
    memory: str | float | None = ...,
    seconds: float | None = ...,
    half: bool = ...,
    progress: Progress = ...,
    announce: Announce | None = ...,
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
    memory: str | float | None = ...,
    seconds: float | None = ...,
    half: bool = ...,
    progress: Progress = ...,
    announce: Announce | None = ...,
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
    memory: str | float | None = ...,
    seconds: float | None = ...,
    half: bool = ...,
    progress: Progress = ...,
    announce: Announce | None = ...,
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
    memory: str | int | float | None = None,
    seconds: int | float | None = None,
    half: bool = False,
    progress: Progress = lambda *_: None,
    announce: Announce | None = None,
    **settings: object,
) -> Any:
    """Explains a text, or each of a list of texts, by one method.

    `target` is a class by number or name (of a language model: the next token), None the predicted one; with `against`
    the difference of two; `scale="log-probability"` asks for log-probabilities instead of logits. A pair of texts is a
    `heedful.Pair`. `memory` ("2GB") and `seconds` bound what the run may take: passes are split and samples limited to
    fit, or the run is refused with the numbers; `half` answers masks in half precision where that is measured to move
    them little. `progress` is told the masks done of one text, or the texts of a list; `announce`, before a text's
    masks are asked, what they will cost. Ctrl-C during sampling gives the explanation of a text from what was answered.
    Every other keyword is a setting of the method: `unit`, and what `heedful.methods()[method]` lists.
    """
    explainer = configure(method, settings)
    if not isinstance(text, list | tuple):
        budget = Budget.of(memory, seconds, progress, half)
        question = ask(model, [text], target, against, scale, budget)
        if announce is not None and (cost := plan([fitting(explainer, question)], question)) is not None:
            announce(cost.limited(budget.seconds))
        return answer(explainer, question)[0]
    explanations: list[Explanation] = []
    budget = Budget.of(memory, None if seconds is None else seconds / max(1, len(text)), lambda *_: None, half)
    for start in range(0, len(text), _BATCH):
        question = ask(model, text[start : start + _BATCH], target, against, scale, budget)
        batches = portions(model, question.documents) if isinstance(model, Listened) else [question.documents]
        for documents in batches:
            explanations += answer(explainer, replace(question, documents=tuple(documents), seconds={}))
            progress(len(explanations), len(text))
            if any(explanation.was_stopped for explanation in explanations[-len(documents) :]):
                raise KeyboardInterrupt
    return explanations
