"""The contract of every metric, and what is put before it."""

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from types import ModuleType
from typing import Any, ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful import family
from heedful.errors import BadInput, Unsupported
from heedful.explainers import Explainer
from heedful.explainers.explain import run_explainer
from heedful.explanation import Explanation
from heedful.family import setting_types
from heedful.models import Model, Offer
from heedful.models.question import Question, ask
from heedful.perturb.answers import Answers
from heedful.perturb.masks import generator

Better = Literal["higher", "lower"]
Want = Literal["sign", "again", "rationale", "gold", "twin"]
"""What a metric wants beside the model: scores with a sign; the explainer, to run it again; what people marked; the
words that the model is known to use; an equal model that is written differently."""

_WHY: dict[Want, str] = {
    "sign": "the method gives no sign, and this asks for one",
    "again": "the explanation was read in and cannot be made again",
    "rationale": "nobody marked the evidence in this text",
    "gold": "which words the model uses is not known",
    "twin": "there is no equal model that is written differently",
}


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """One explanation on evaluation, with all that may be known of its document.

    `answers` is common to all evaluations of the document, `altered_models` to all evaluations of the model: other models that were made
    of it. `explainer` is None where the explanation was read in.
    """

    question: Question
    explanation: Explanation
    answers: Answers
    explainer: Explainer | None = None
    rationale: Bool[np.ndarray, "unit"] | None = None
    gold: Bool[np.ndarray, "unit"] | None = None
    twin: Model | None = None
    altered_models: dict[str, Any] = field(default_factory=dict)

    @property
    def scores(self) -> Float[np.ndarray, "unit"]:
        return self.explanation.scores

    @cached_property
    def tie_breaks(self) -> Float[np.ndarray, "unit"]:
        """A random number for every unit of the document, which decides between equal scores, whoever gave them."""
        return generator(0, self.explanation.document).random(len(self.scores))

    @cached_property
    def strongest(self) -> Int[np.ndarray, "unit"]:
        """The units from the strongest on, of either sign."""
        return np.lexsort((self.tie_breaks, -np.abs(self.scores)))

    @cached_property
    def highest(self) -> Int[np.ndarray, "unit"]:
        """The units from the most positive to the most negative."""
        return np.lexsort((self.tie_breaks, -self.scores))

    @cached_property
    def lowest(self) -> Int[np.ndarray, "unit"]:
        """The units from the most negative to the most positive."""
        return np.lexsort((self.tie_breaks, self.scores))

    def rerun(self, seed: int | None = None, model: Model | None = None, text: Any = None) -> Explanation:
        """The same explainer once more, on the same target: with another seed, on another model, of another text."""
        assert self.explainer is not None
        explainer, target = self.explainer, self.explanation.target
        if seed is not None and "seed" in setting_types(type(explainer)):
            fields: dict[str, Any] = {"seed": seed}
            explainer = replace(explainer, **fields)
        model = model or self.question.model
        if text is None:
            asked = Question(
                model, self.question.documents, self.question.wanted._replace(request=target, against=None)
            )
        else:
            asked = ask(model, [text], target, scale=target.scale)
        found = run_explainer(explainer, replace(asked, budget=self.question.budget))[0]
        if found.was_stopped:
            # What was cut short is not what the method says.
            raise KeyboardInterrupt
        return found

    def rerun_with_seed(self, number: int = 1, model: Model | None = None) -> Explanation:
        """The same explainer with the `number`-th seed after its own, on another model if one is named.

        On the same model it is run once for all who ask, and not at all where nothing is left to chance.
        """
        seed = int(getattr(self.explainer, "seed", 0)) + number
        if model is not None:
            return self.rerun(seed, model)
        chance = any(note.kind == "not-deterministic" for note in self.explanation.notes)
        if not chance and "seed" not in setting_types(type(self.explainer)):
            return self.explanation
        if number not in self._others:
            self._others[number] = self.rerun(seed)
        return self._others[number]

    @cached_property
    def _others(self) -> dict[int, Explanation]:
        return {}

    def distance(self, other: Explanation) -> float:
        """How far another explanation of as many units lies from this one, both brought to length one: 0 to 2."""
        return float(np.linalg.norm(direction(self.scores) - direction(other.scores)))


def direction(scores: Float[np.ndarray, "unit"]) -> Float[np.ndarray, "unit"]:
    """The scores over their length, so that only their proportions count; zeros stay zeros."""
    length = float(np.linalg.norm(scores))
    return scores / length if length > 0 else np.zeros_like(scores)


@dataclass(frozen=True)
class Metric(ABC):
    """A number that says how good an explanation is, in one sense. Its fields are its settings."""

    name: ClassVar[str]
    question: ClassVar[str]
    """What it answers, in the words of a user."""
    better: ClassVar[Better]
    source: ClassVar[str]
    not_for: ClassVar[str]
    """What it must not be used for."""
    needs: ClassVar[frozenset[Offer]]
    wants: ClassVar[frozenset[Want]]
    default: ClassVar[bool] = True
    """Whether a report has it unless metrics are named; metrics that explain many inputs anew must be named."""
    bounds: ClassVar[tuple[float, float]] = (-inf, inf)
    """The least and the largest possible value."""

    @abstractmethod
    def measure(self, evaluation: Evaluation) -> float:
        """The number for one explanation; an error of ours says why there is none."""


def measure(metric: Metric, evaluation: Evaluation) -> float:
    """One number, or the reason why there is none as an error of ours."""
    missing = sorted(metric.needs - evaluation.question.model.offers)
    if missing:
        raise Unsupported(f"{metric.name} needs {', '.join(missing)}, which this model does not offer.")
    there = {
        "sign": evaluation.explanation.signed,
        "again": evaluation.explainer is not None,
        "rationale": evaluation.rationale is not None,
        "gold": evaluation.gold is not None,
        "twin": evaluation.twin is not None,
    }
    for want in sorted(metric.wants):
        if not there[want]:
            raise Unsupported(f"{metric.name}: {_WHY[want]}.")
    value = float(metric.measure(evaluation))
    if not np.isfinite(value):
        raise BadInput(f"{metric.name} is not a finite number here.")
    return value


@final
class _Family(ModuleType):
    """This package, made callable: `heedful.metrics()` is the catalogue and `heedful.metrics` the folder."""

    def __call__(self) -> dict[str, type[Metric]]:
        return dict(family.members(__name__, Metric))


sys.modules[__name__].__class__ = _Family
