"""The contract of every metric, and the Evaluation of one explanation that it receives."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any, ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.errors import BadInput, Unsupported
from heedful.explainers import Explainer, noise_floor
from heedful.explainers.run import run_explainer
from heedful.explanation import Explanation
from heedful.family import FamilyPackage, setting_types
from heedful.models import Model, Offer, check_offers
from heedful.models.question import Question, ask
from heedful.perturb.document_values import DocumentValues
from heedful.perturb.masks import generator
from heedful.statistics.ties import settled

Better = Literal["higher", "lower"]
Want = Literal["sign", "again", "rationale", "gold", "twin", "label"]
"""What a metric needs besides the model: signed scores; the explainer, to run it again; the evidence that people
marked; the words that the model is known to use; an equivalent model with another implementation; the class of the
text in the data."""

Use = Literal[
    "rank words",
    "find the evidence against",
    "cheap screening",
    "find the known words",
    "find the sources of the output",
]
"""What an explanation is used for; a report recommends a method for each."""

_WHY: dict[Want, str] = {
    "sign": "this metric needs signed scores; the method's scores are unsigned",
    "again": "this explanation was imported, so its method cannot be run again",
    "rationale": "this text has no human rationale",
    "gold": "this metric needs the words that the model uses; pass them as gold",
    "twin": "this metric needs an equivalent model with another implementation; pass one as twin",
    "label": "this text has no label",
}


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """One explanation to be measured, with everything that a metric may need.

    `values` is shared by all evaluations of the document; `altered_models`, copies of the model with other weights, by
    all evaluations of the model. `explainer` is None if the explanation was imported.
    """

    question: Question
    explanation: Explanation
    values: DocumentValues
    explainer: Explainer | None = None
    rationale: Bool[np.ndarray, "unit"] | None = None
    gold: Bool[np.ndarray, "unit"] | None = None
    twin: Model | None = None
    altered_models: dict[str, Any] = field(default_factory=dict)
    label: int | None = None

    @property
    def scores(self) -> Float[np.ndarray, "unit"]:
        """The scores of the explanation."""
        return self.explanation.scores

    @cached_property
    def tie_breaks(self) -> Float[np.ndarray, "unit"]:
        """A random number for every unit of the document, the same for all methods, that orders equal scores."""
        return generator(0, self.explanation.document).random(len(self.scores))

    @cached_property
    def settled(self) -> Float[np.ndarray, "unit"]:
        """The scores for ranks: rounding is removed, so that scores of 1e-17 are ties."""
        return settled(self.scores, noise_floor(self.explanation, output_level(self.question)))

    @cached_property
    def strongest(self) -> Int[np.ndarray, "unit"]:
        """The units by |score|, the largest first."""
        return np.lexsort((self.tie_breaks, -settled(np.abs(self.settled))))

    @cached_property
    def highest(self) -> Int[np.ndarray, "unit"]:
        """The units from the most positive to the most negative."""
        return np.lexsort((self.tie_breaks, -self.settled))

    @cached_property
    def lowest(self) -> Int[np.ndarray, "unit"]:
        """The units from the most negative to the most positive."""
        return np.lexsort((self.tie_breaks, self.settled))

    def rerun(self, seed: int | None = None, model: Model | None = None, text: Any = None) -> Explanation:
        """Runs the explainer again for the same target: with another seed, on another model, or on another text."""
        assert self.explainer is not None
        explainer, target = self.explainer, self.explanation.target
        if seed is not None and "seed" in setting_types(type(explainer)):
            fields: dict[str, Any] = {"seed": seed}
            explainer = replace(explainer, **fields)
        model = model or self.question.model
        if text is None:
            wanted = self.question.wanted._replace(request=target, against=None)
            question = replace(self.question, model=model, wanted=wanted, mask_values=None)
        else:
            question = ask(model, [text], target, scale=target.scale)
        explanation = run_explainer(explainer, replace(question, budget=self.question.budget))[0]
        if explanation.was_stopped:
            # An explanation from part of its samples must not be measured as the method's.
            raise KeyboardInterrupt
        return explanation

    def rerun_with_seed(self, number: int = 1, model: Model | None = None) -> Explanation:
        """Runs the explainer with its seed plus `number`, on another model if one is given.

        On the same model each seed is run once for all metrics; a deterministic method is not run at all.
        """
        assert self.explainer is not None
        seed = int(asdict(self.explainer).get("seed", 0)) + number
        if model is not None:
            return self.rerun(seed, model)
        varies = any(note.kind == "not-deterministic" for note in self.explanation.notes)
        if not varies and "seed" not in setting_types(type(self.explainer)):
            return self.explanation
        if number not in self._reruns:
            self._reruns[number] = self.rerun(seed)
        return self._reruns[number]

    @cached_property
    def _reruns(self) -> dict[int, Explanation]:
        return {}

    def distance(self, other: Explanation) -> float:
        """The distance to another explanation with the same number of units, both scaled to length 1: from 0 to 2."""
        return float(np.linalg.norm(direction(self.scores) - direction(other.scores)))


def output_level(question: Question) -> float:
    """The size of the output of the first document, of which rounding is a share: of the target and of all logits."""
    logits = question.logits[0]
    target = float(question.targets[0].of(question.logits[:1])[0])
    return float(np.abs(np.append(logits[np.isfinite(logits)], target)).max())


def direction(scores: Float[np.ndarray, "unit"]) -> Float[np.ndarray, "unit"]:
    """The scores scaled to length 1, so that only their proportions count; zeros stay zeros."""
    length = float(np.linalg.norm(scores))
    return scores / length if length > 0 else np.zeros_like(scores)


@dataclass(frozen=True)
class Metric(ABC):
    """A number that measures one quality of an explanation. Its fields are its settings."""

    name: ClassVar[str]
    question: ClassVar[str]
    """The question that it answers, as a user would ask it."""
    better: ClassVar[Better]
    source: ClassVar[str]
    not_for: ClassVar[str]
    """What it must not be used for."""
    needs: ClassVar[frozenset[Offer]]
    wants: ClassVar[frozenset[Want]]
    bounds: ClassVar[tuple[float, float]] = (-inf, inf)
    """The smallest and the largest possible value."""

    uses: ClassVar[tuple[Use, ...]] = ()
    """The uses for which it counts in the verdict of a report; by default a report has only metrics with a use."""
    for_written: ClassVar[bool] = False
    """Whether it is in a report by default only if the report is about text that a model writes."""
    in_target: ClassVar[bool] = False
    """Whether values are differences of the target, so that their size depends on the text."""

    @abstractmethod
    def measure(self, evaluation: Evaluation) -> float:
        """The value for one explanation; raises a HeedfulError with the reason if there is none."""


def measure(metric: Metric, evaluation: Evaluation) -> float:
    """The value of a metric for one explanation; raises a HeedfulError with the reason if there is none."""
    check_offers(evaluation.question.model, metric.needs, metric.name)
    present = {
        "sign": evaluation.explanation.signed,
        "again": evaluation.explainer is not None,
        "rationale": evaluation.rationale is not None,
        "gold": evaluation.gold is not None,
        "twin": evaluation.twin is not None,
        "label": evaluation.label is not None,
    }
    for want in sorted(metric.wants):
        if not present[want]:
            raise Unsupported(f"{_WHY[want]}.", metric.name, ": ")
    value = float(metric.measure(evaluation))
    if not np.isfinite(value):
        raise BadInput("is not finite for this text.", metric.name)
    return value


FamilyPackage.make(__name__, Metric)
