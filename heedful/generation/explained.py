"""Explains every part of an output by one method, from passes that all parts share."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, Literal, final, get_args

import numpy as np
import torch

from heedful.document import SPECIAL, Document
from heedful.document.note import Note
from heedful.errors import BadInput, Unsupported, unknown_name
from heedful.explainers import Explainer, MaskingExplainer
from heedful.explainers.planning import ANNOUNCED, Announce, Limited, mask_forecast, within_budget
from heedful.explainers.run import run_explainer, with_probes
from heedful.explanation import Explanation
from heedful.generation.continuation import Continuation, Foil
from heedful.generation.measure import Measure, MeasureName
from heedful.generation.written import Of, fixed, groups_of, with_output
from heedful.models.attention_hook import still
from heedful.models.budget import Budget
from heedful.models.language import LanguageModel
from heedful.models.question import Question, Wanted
from heedful.target import Target

Quantity = MeasureName | Literal["context-gain"]
"""What is explained of each token; "context-gain" is log p less log p without the context (P-CXMI)."""
_SHARED = ("logits", "recording")


@final
@dataclass(frozen=True, eq=False)
class Task:
    """What is explained: parts of the output behind a prompt, as units of a document."""

    writer: LanguageModel
    prompt: Document
    document: Document
    of: Of
    quantity: Quantity

    def __post_init__(self) -> None:
        names = (*get_args(MeasureName), "context-gain")
        if self.quantity not in names:
            raise unknown_name("measure", self.quantity, names)

    @property
    def n_written(self) -> int:
        """The number of tokens of the output."""
        return len(self.document.ids) - len(self.prompt.ids)

    @cached_property
    def ids(self) -> list[int]:
        """The tokens of the output."""
        return self.document.ids[len(self.prompt.ids) :].tolist()


def second_text(task: Task, against: str | None, bare: Document | None) -> Foil | Document | None:
    """What the output is compared with: another output, or the same one behind the `bare` prompt without context.

    For the divergence "kl" the second document itself, whose distributions are the reference.
    """
    if task.quantity in ("context-gain", "kl"):
        if bare is None or against is not None:
            raise BadInput(f"The measure {task.quantity} compares with the text without its context; give a context.")
        document = fixed(task.writer.continued(bare, task.ids))
        if task.quantity == "kl":
            return document
        origin = _places(task, document)
        return _foil(task, document, origin, _words_at(task, document, origin))
    if against is None:
        return None
    if task.quantity == "entropy":
        raise BadInput("An entropy is of no output, so it cannot be explained against another one; leave one out.")
    other = with_output(task.writer, task.prompt, against)
    n = len(other.ids) - len(task.prompt.ids)
    if other.ids.tolist() == task.document.ids.tolist():
        raise BadInput("The output and the one against it are the same; give another.")
    if n != task.n_written and task.of != "sequence":
        raise BadInput(
            f'The output has {task.n_written} tokens and the one against it {n}; give as many, or of="sequence".'
        )
    n_before, first, second = len(task.prompt.ids), task.document.ids, other.ids
    # The common beginning of both outputs is the same text.
    shorter = min(len(first), len(second))
    n_same = next((place for place in range(shorter) if first[place] != second[place]), shorter)
    return _foil(task, fixed(other), (*range(n_same), *([SPECIAL] * (n_before + n - n_same))))


def _foil(task: Task, document: Document, origin: tuple[int, ...], removed_with: tuple[int, ...] | None = None) -> Foil:
    n_before = len(task.prompt.ids) if task.quantity != "context-gain" else len(document.ids) - task.n_written
    n = len(document.ids) - n_before
    _, groups = groups_of(document if task.of == "sequence" else task.document, n, task.of)
    written = tuple(document.ids[n_before:].tolist())
    model = Continuation(task.writer, tuple(map(str, groups)), groups, Measure(_measured(task)), written=written)
    return Foil(model, document, origin, removed_with)


def _measured(task: Task) -> MeasureName:
    return "log-probability" if task.quantity == "context-gain" else task.quantity


def _places(task: Task, bare: Document) -> tuple[int, ...]:
    """For every token of the text without context the same token of the text with it, or −1.

    Equal tokens at the end are the same, and equal tokens before the context.
    """
    long, short = task.document.ids.tolist(), bare.ids.tolist()
    n_end = next((n for n in range(len(short)) if long[-1 - n] != short[-1 - n]), len(short))
    inside = np.zeros(len(long), dtype=bool)
    if task.document.passages is not None:
        inside = task.document.passages != SPECIAL
    n_end = min(n_end, next((n for n in range(len(long)) if inside[-1 - n]), len(long)))
    n_start = next((n for n in range(len(short)) if long[n] != short[n] or inside[n]), len(short))
    n_start = min(n_start, len(short) - n_end)
    middle = [SPECIAL] * (len(short) - n_start - n_end)
    return (*range(n_start), *middle, *range(len(long) - n_end, len(long)))


def _words_at(task: Task, bare: Document, origin: tuple[int, ...]) -> tuple[int, ...]:
    """The same, and tokens that cover the same characters from the end: a text may begin with other tokens."""
    long, outside = task.document, np.ones(len(task.document.ids), dtype=bool)
    if long.passages is not None:
        outside = long.passages == SPECIAL
    at_end = {
        (len(long.text) - start, len(long.text) - end): place
        for place, (start, end) in enumerate(long.spans)
        if start < end and outside[place]
    }
    n = len(bare.text)
    return tuple(
        at_end.get((n - start, n - end), SPECIAL) if place == SPECIAL and start < end else place
        for place, (start, end) in zip(origin, bare.spans, strict=True)
    )


def explained(
    task: Task, second: Foil | Document | None, explainer: Explainer, budget: Budget, announce: Announce | None = None
) -> tuple[tuple[Explanation, ...], int]:
    """An explanation of each part of the output, and the number of masked copies that were evaluated for all."""
    names, groups = groups_of(_spelt(task), task.n_written, task.of)
    foil, reference = (second, None) if isinstance(second, Foil) or second is None else (None, _reference(task, second))
    measure = Measure(_measured(task), reference)
    model = Continuation(task.writer, names, groups, measure, foil, written=tuple(task.ids))
    _check_fits(explainer, model)
    masking, limits = isinstance(explainer, MaskingExplainer), Limited(explainer, _question(task, model, 0, foil))
    limits = _within(limits, budget, announce)
    common: dict[Hashable, Any] = {}
    explanations: list[Explanation] = []
    for number in range(len(names)):
        question = _question(task, model, number, foil)
        watch = budget.watch if masking and not number else lambda *_: None
        question = replace(question, budget=replace(limits.question.budget, watch=watch))
        for key, result in common.items():
            question.once(key, lambda result=result: result)
        (explanation,) = run_explainer(limits.explainer, question)
        if masking:
            explanation = _without_later(explanation, len(task.prompt.ids) + max(groups[number]))
        if not number:
            explanation = with_probes(explanation, limits.n_probes).noted((*limits.notes, *_unseen(task, explainer)))
        explanations.append(explanation)
        shared = question.shared
        common = {} if shared is None else {key: shared.results[key] for key in _SHARED if key in shared.results}
        if not masking:
            budget.watch(number + 1, len(names))
    return tuple(explanations), sum(map(len, model.store.values.values()))


def _check_fits(explainer: Explainer, model: Continuation) -> None:
    """Refuses a method that does not explain this quantity."""
    if explainer.name == "anchors" and model.returns != "log-probabilities":
        raise Unsupported("asks whether the output keeps half of its probability; leave `measure` out.", explainer.name)
    if model.measure.name != "log-probability" and explainer.needs <= {"attention", "layers"}:
        raise Unsupported("reads attention, which is the same for every measure; leave `measure` out.", explainer.name)
    # Both texts run through the same layers, whose attention would be recorded twice.
    if model.foil is not None and not explainer.needs.isdisjoint(("attention", "layers")):
        raise Unsupported(
            "reads the attention of one text, and this compares two; choose a method of gradients or masks.",
            explainer.name,
        )


def _unseen(task: Task, explainer: Explainer) -> tuple[Note, ...]:
    """A note where attention to earlier output is no part of the scores."""
    seen = not task.writer.n_sources([task.document]) or not explainer.needs <= {"attention"}
    return () if seen else (Note("Scores are attention to the source; attention to earlier output is left out."),)


def _question(task: Task, model: Continuation, number: int, foil: Foil | None) -> Question:
    """The question about one part of the output."""
    target = Target(number, _named(task, model.classes[number], foil), None, model.scale, model.returns)
    return Question(model.focused(number), (task.document,), Wanted(target))


def _within(limits: Limited, budget: Budget, announce: Announce | None) -> Limited:
    """The explainer within the limits of time and memory, which are for the whole table: all parts share every pass."""
    explainer, question = limits.explainer, replace(limits.question, budget=replace(budget, watch=lambda *_: None))
    cost = None if announce is None else mask_forecast([explainer], question, ANNOUNCED)
    if announce is not None and cost is not None:
        announce(cost.limited(budget.seconds))
    n_probes = 0 if cost is None else cost.n_probes
    if budget.memory is None and budget.seconds == inf:
        return Limited(explainer, question, (), n_probes)
    limited = within_budget(explainer, question)
    unlimited = replace(limited.question.budget, memory=None, seconds=inf)
    question = replace(limited.question, budget=unlimited)
    return Limited(limited.explainer, question, limited.notes, limited.n_probes + n_probes)


def _without_later(explanation: Explanation, last: int) -> Explanation:
    """The explanation with scores of exactly 0 for what is not read before the last token of a part.

    Samples leave noise there, though nothing that is written later can change the part.
    """
    units = explanation.document.unit_of(explanation.unit)
    before = np.zeros(len(explanation.scores), dtype=bool)
    before[units[:last][units[:last] != SPECIAL]] = True
    error = None if explanation.error is None else np.where(before, explanation.error, 0.0)
    return replace(explanation, scores=np.where(before, explanation.scores, 0.0), error=error)


def _spelt(task: Task) -> Document:
    """The document whose output has words, by which its parts are named."""
    return task.writer.continued(task.prompt, task.ids)


def _named(task: Task, name: str, foil: Foil | None) -> str:
    if task.quantity == "context-gain":
        return f"{name} less the same without the context"
    if task.quantity in ("entropy", "kl"):
        return f"{task.quantity} before {name}"
    return name if foil is None else f"{name} less that of the other output"


@torch.no_grad()
def _reference(task: Task, bare: Document) -> torch.Tensor:
    """The log-probabilities of every token at the positions of the output, without the context."""
    model = Continuation(task.writer)
    with still(task.writer.network):
        return model.token_logits(bare)[0].log_softmax(dim=-1)
