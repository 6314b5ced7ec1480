"""The contract of every explainer, and the catalogue of methods."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Float

from heedful import family
from heedful.document import Absence, Unit
from heedful.document.units import unit_scores
from heedful.errors import BadInput, in_short, unknown_name
from heedful.explanation import Explanation
from heedful.family import build, split_settings
from heedful.models import Offer
from heedful.models.question import Question
from heedful.perturb.forecast import MaskCount
from heedful.perturb.rounds import Samples
from heedful.perturb.stopping import Goal, Until
from heedful.statistics.intervals import mean_of_draws
from heedful.statistics.ties import NOISE

Group = Literal["attention", "gradients", "surrogates", "Shapley values", "removal", "control"]
"""The groups of the catalogue, in the order in which they are listed."""
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Explainer(ABC):
    """A method that gives every unit of a document one score. Its fields are its settings."""

    name: ClassVar[str]
    group: ClassVar[Group]
    """The group of the catalogue in which it is listed."""
    needs: ClassVar[frozenset[Offer]]
    signed: ClassVar[bool]
    opt_in: ClassVar[bool] = False
    """Whether `compare` and `trust` use it only if it is named, not with "all"."""
    removal: ClassVar[Literal["single", "joint"] | None] = None
    """Whether scores are drops of the target, in its own units, when units are removed one at a time or together."""
    joint_rank: ClassVar[int | None] = None
    """Its rank, 1 first, among the methods whose joint removal is compared with leave-one-out; None if it has none."""
    mean_attention: ClassVar[Literal["any depth", "one layer"] | None] = None
    """Whether scores are proportional to the mean attention over heads and layers, and of which models."""
    times_input: ClassVar[bool] = False
    """Whether scores are gradient × input; those of methods with a setting `reduce` are if it is "x-input"."""
    summary_group: ClassVar[tuple[str, int] | None] = None
    """The idea that it shares with similar methods, and its place among them. `compare` and `trust` use the first of
    each idea that the model offers; a summary of a comparison shows the first."""

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
        """The explanation of one of the question's documents, with its provenance.

        `facts` counts rows of passes: `forwards` (that of the logits included), `backwards`, and `masks` (masked copies
        of the document). Passes that several explainers share are counted as if each explainer ran alone.
        """
        output = float(question.targets[index].of(question.logits[index : index + 1])[0])
        zero = question.model.note_of_zero if output == 0 else None
        return Explanation(
            document=question.documents[index],
            target=question.targets[index],
            unit=self.unit,
            scores=scores,
            output=output,
            method=self.name,
            signed=self.signed,
            settings=asdict(self),
            error=error,
            facts={"forwards": 1, **facts},
            model=question.model.fingerprint,
            notes=(*question.documents[index].notes, *([] if zero is None else [zero])),
        )

    def from_tokens(
        self,
        question: Question,
        rows: Float[np.ndarray, "batch token"],
        facts: Mapping[str, int | float],
        errors: Float[np.ndarray, "batch token"] | None = None,
    ) -> list[Explanation]:
        """Explanations from one score per token, summed over each unit; special tokens and padding go to `facts`.

        Without `errors` the scores are exact. The half-width of a sum is at most the sum of the parts' half-widths.
        """
        explanations = []
        for index, (document, row) in enumerate(zip(question.documents, rows, strict=True)):
            scores, others = unit_scores(document, self.unit, row)
            error = np.zeros_like(scores) if errors is None else unit_scores(document, self.unit, errors[index])[0]
            explanations.append(self.explanation(question, index, scores, error, {**others, **facts}))
        return explanations

    def from_passes(self, question: Question, index: int, draws: Float[np.ndarray, "draw token"]) -> Explanation:
        """The mean of draws, each one forward and one backward pass, with a 95 % confidence interval for every unit."""
        scored = [unit_scores(question.documents[index], self.unit, row) for row in draws]
        scores, error = mean_of_draws(np.stack([scores for scores, _ in scored]))
        others = {name: float(np.mean([row.get(name, 0.0) for _, row in scored])) for name in scored[0][1]}
        passes = {"forwards": 1 + len(draws), "backwards": len(draws), "effective_samples": len(draws)}
        return self.explanation(question, index, scores, error, {**others, **passes})


class MaskingExplainer(Explainer):
    """An explainer that evaluates the model on masked copies of the document, and declares how many it needs."""

    absence: Absence

    @abstractmethod
    def n_masks(self, n_units: int) -> MaskCount:
        """How many masked copies a document of `n_units` units needs, and the setting that limits them."""


class CertifiedExplainer(MaskingExplainer):
    """A masking explainer that samples a number of masks, or until a claim is certain."""

    n_samples: Samples
    tolerance: float
    budget: int
    until: Until
    strongest: int
    confidence: float

    @cached_property
    def samples(self) -> Samples:
        """The number of masks; "auto" where a certificate decides when sampling stops."""
        return self.n_samples if self.until == "width" else "auto"

    @cached_property
    def goal(self) -> Goal:
        """What must be certain before sampling stops."""
        return Goal(self.until, self.strongest, self.confidence, self.tolerance, self.budget)


@dataclass(frozen=True)
class SampledGradient(Explainer):
    """An explainer that averages gradients at random points near the text, or between it and a baseline."""

    n_samples: int = 32
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not 2 <= self.n_samples <= 100_000:
            raise BadInput(f"{self.name} takes 2 to 100,000 samples; n_samples is {self.n_samples:,}.")
        if not 0 <= self.noise < np.inf:
            raise BadInput(f"{self.name} needs noise of at least 0; {self.noise:g} was given.")


def methods() -> dict[str, type[Explainer]]:
    """Every explainer, by its catalogue name: group by group, the methods of one idea together."""
    groups = get_args(Group)

    def place(item: tuple[str, type[Explainer]]) -> tuple[int, bool, tuple[str, int], str]:
        name, kind = item
        return groups.index(kind.group), kind.summary_group is None, kind.summary_group or ("", 0), name

    return dict(sorted(family.members(__name__, Explainer).items(), key=place))


def every_method() -> list[str]:
    """The names that "all" stands for: every method but those that must be named."""
    return [name for name, kind in methods().items() if not kind.opt_in]


def default_methods(offers: Set[Offer]) -> list[str]:
    """One method per idea: the first that needs only what the model offers, or the first of all if there is none."""
    ideas: dict[str, list[str]] = {}
    for name, kind in methods().items():
        if kind.summary_group is not None:
            ideas.setdefault(kind.summary_group[0], []).append(name)
    needs = {name: kind.needs for name, kind in methods().items()}
    return [next((name for name in names if needs[name] <= offers), names[0]) for names in ideas.values()]


def noise_floor(explanation: Explanation, level: float) -> float:
    """The size of scores that may be rounding, where outputs have the size `level`.

    Losses of the target are differences of outputs and rounded like them; other scores are in scales of their own.
    """
    kind = methods().get(explanation.method)
    return (_ROUNDING if kind is None or kind.removal is None else NOISE) * level


def settings_of(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """For each method, the settings that it has; a method or setting that does not exist is refused."""
    catalogue, wanted = methods(), list(names)
    for name in wanted:
        if not isinstance(name, str) or name not in catalogue:
            raise unknown_name("method", name, catalogue)
    return dict(zip(wanted, split_settings(settings, [catalogue[name] for name in wanted]), strict=True))


def configure(method: str, settings: Mapping[str, Any]) -> Explainer:
    """The explainer of that name with those settings."""
    if not isinstance(method, str):
        raise BadInput(f"A method is named by one string; {in_short(method)} was given. compare takes several methods.")
    for name in ("text_column", "label_column", "id_column"):
        if name in settings:
            python = name.removesuffix("_column")
            raise BadInput(f"{name} is an option of the command line; in Python write {python}={settings[name]!r}.")
    if "," in method:
        raise BadInput(f"explain takes one method; {method!r} was given. compare takes several.")
    own = settings_of([method], settings)[method]
    return build(methods()[method], method, own)
