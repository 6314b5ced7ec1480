"""What happens to the target when the units that an explanation names go, or when only they stay."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.perturb.masks import counts_of, first

Evidence = Literal["any", "for", "against"]
"""Which units count: the strongest of either sign, the most positive, the most negative."""
Measure = Literal["target", "probability"]
"""Whether changes are those of the target or of its probability."""

ERASER = (0.01, 0.05, 0.10, 0.20, 0.50)
"""The shares of DeYoung et al. (2020), Section 4."""
_MASKS: frozenset[Offer] = frozenset({"masks"})
_NOTHING: frozenset[Want] = frozenset()
_SIGN: frozenset[Want] = frozenset({"sign"})


def ranked(evaluation: Evaluation, evidence: Evidence) -> Int[np.ndarray, "unit"]:
    """The units in the order in which an explanation says that they matter; equals by lot."""
    if evidence == "any":
        return evaluation.strongest
    if not evaluation.explanation.signed:
        raise Unsupported(f"{evaluation.explanation.method} gives no sign, so it names no evidence {evidence}.")
    return evaluation.highest if evidence == "for" else evaluation.lowest


def values_on(
    evaluation: Evaluation, keep: Bool[np.ndarray, "step unit"], absence: Absence, measure: Measure
) -> Float[np.ndarray, "step"]:
    """The target, or its probability, on masks."""
    if measure == "target":
        return evaluation.answers(keep, absence)
    if evaluation.explanation.target.against is not None:
        raise Unsupported("A contrast of two classes has no probability; measure the target instead.")
    return np.exp(evaluation.answers(keep, absence, "log-probability"))


def taken(
    evaluation: Evaluation, named: Bool[np.ndarray, "step unit"], absence: Absence, measure: Measure, evidence: Evidence
) -> Float[np.ndarray, "step"]:
    """How far f moves when the named units go.

    Units of either sign would cancel if they went together. So those without which f falls, each gone alone, and those
    without which it rises go apart, and both changes count: the model says on which side a unit is, and every method is
    judged by the units it names, whether it gives a sign or not.
    """
    whole = values_on(evaluation, np.ones((1, named.shape[1]), dtype=bool), absence, measure)[0]
    if evidence != "any":
        lost = whole - values_on(evaluation, ~named, absence, measure)
        return lost if evidence == "for" else -lost
    helps = evaluation.answers.one_out(absence) > 0
    sides = values_on(evaluation, ~np.concatenate([named & helps, named & ~helps]), absence, measure)
    return np.abs(whole - sides).reshape(2, -1).sum(axis=0)


def given(
    evaluation: Evaluation, named: Bool[np.ndarray, "step unit"], absence: Absence, measure: Measure, evidence: Evidence
) -> Float[np.ndarray, "step"]:
    """How far f moves from f(∅) when only the named units come; those of either side apart, as in `taken`."""
    empty = values_on(evaluation, np.zeros((1, named.shape[1]), dtype=bool), absence, measure)[0]
    if evidence != "any":
        gained = values_on(evaluation, named, absence, measure) - empty
        return gained if evidence == "for" else -gained
    helps = evaluation.answers.one_out(absence) > 0
    sides = values_on(evaluation, np.concatenate([named & helps, named & ~helps]), absence, measure)
    return np.abs(sides - empty).reshape(2, -1).sum(axis=0)


def steps(evaluation: Evaluation, evidence: Evidence, n_steps: int) -> tuple[Bool[np.ndarray, "step unit"], np.ndarray]:
    """What a curve of so many steps, from no unit to all, names at each of them, and the width of every step."""
    if n_steps < 1:
        raise BadInput(f"A curve needs at least 1 step; n_steps is {n_steps}.")
    counts = np.unique(np.round(np.arange(n_steps + 1) / n_steps * len(evaluation.scores)).astype(np.int64))
    return first(ranked(evaluation, evidence), counts), np.diff(counts) / len(evaluation.scores)


def area(heights: Float[np.ndarray, "step"], widths: Float[np.ndarray, "step-1"]) -> float:
    """The mean height of a curve, by trapezoids."""
    return float((heights[1:] + heights[:-1]) @ widths / 2)


@final
@dataclass(frozen=True)
class Deletion(Metric):
    """How far the target moves as the strongest units go first, over all shares.

    The area over the perturbation curve, the mean over k of f(x) − f(x without the k strongest) (Samek et al., 2016).
    Differs from the source: by default units of either sign count, by the size of what they move (`taken`), so that
    methods without a sign are judged by the same rule; `evidence="for"` is the published form. Shares in `n_steps`.
    """

    name: ClassVar[str] = "deletion"
    question: ClassVar[str] = "Does the output move when the units it names go?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Samek et al., 2016, arXiv:1509.06321; Petsiuk et al., 2018, arXiv:1806.07421"
    not_for: ClassVar[str] = "comparing models or absences: thinned texts are unlike those the model was trained on."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _NOTHING

    absence: Absence = "replace"
    n_steps: int = 10
    evidence: Evidence = "any"
    measure_of: Measure = "target"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named, widths = steps(evaluation, self.evidence, self.n_steps)
        return area(taken(evaluation, named, self.absence, self.measure_of, self.evidence), widths)


@final
@dataclass(frozen=True)
class Insertion(Metric):
    """How far the target moves from nothing as the strongest units come first.

    The mean over k of f(the k strongest) − f(∅) (Petsiuk et al., 2018). Differs from the source as `deletion` does.
    """

    name: ClassVar[str] = "insertion"
    question: ClassVar[str] = "Do the units it names bring the output about by themselves?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Petsiuk et al., 2018, arXiv:1806.07421"
    not_for: ClassVar[str] = "comparing models or absences: a text of a few words is unlike those it was trained on."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _NOTHING

    absence: Absence = "replace"
    n_steps: int = 10
    evidence: Evidence = "any"
    measure_of: Measure = "target"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named, widths = steps(evaluation, self.evidence, self.n_steps)
        return area(given(evaluation, named, self.absence, self.measure_of, self.evidence), widths)


@final
@dataclass(frozen=True)
class Comprehensiveness(Metric):
    """What the target loses with the strongest 1, 5, 10, 20 and 50 % of units.

    The mean of f(x) − f(x without them) over ERASER's shares (DeYoung et al., 2020, Section 4). Differs from there: by
    default units of either sign count, by the size of what they move, and f is the target, not its probability;
    `evidence="for"` and `measure_of="probability"` give what ferret computes. The paper's formula counts no words at
    all as a sixth share, and is 5/6 of that.
    """

    name: ClassVar[str] = "comprehensiveness"
    question: ClassVar[str] = "Are the few units it names needed?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "DeYoung et al., 2020, arXiv:1911.03429"
    not_for: ClassVar[str] = "comparing models or absences; a text whose evidence stands in it twice."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _NOTHING

    absence: Absence = "replace"
    evidence: Evidence = "any"
    measure_of: Measure = "target"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named = first(ranked(evaluation, self.evidence), counts_of(np.array(ERASER), len(evaluation.scores)))
        return float(taken(evaluation, named, self.absence, self.measure_of, self.evidence).mean())


@final
@dataclass(frozen=True)
class Sufficiency(Metric):
    """How far the target is from itself when only the strongest units stay.

    The mean of |f(x) − f(only they)| over ERASER's shares (DeYoung et al., 2020, Section 4). Differs from the source:
    the distance counts in both directions, and f is the target; `evidence="for"` with `measure_of="probability"` gives
    the published form, whose sign says on which side f is.
    """

    name: ClassVar[str] = "sufficiency"
    question: ClassVar[str] = "Are the few units it names enough?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "DeYoung et al., 2020, arXiv:1911.03429"
    not_for: ClassVar[str] = "comparing models or absences: a text of a few words is unlike those it was trained on."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _NOTHING

    absence: Absence = "replace"
    evidence: Evidence = "any"
    measure_of: Measure = "target"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named = first(ranked(evaluation, self.evidence), counts_of(np.array(ERASER), len(evaluation.scores)))
        whole = values_on(evaluation, np.ones((1, named.shape[1]), dtype=bool), self.absence, self.measure_of)[0]
        short = whole - values_on(evaluation, named, self.absence, self.measure_of)
        signed = -short if self.evidence == "against" else short
        return float((np.abs(short) if self.evidence == "any" else signed).mean())


@final
@dataclass(frozen=True)
class EvidenceFor(Metric):
    """How far the target falls as the most positive units go first.

    The area over the curve of `deletion` with the order of signed scores, its published form (Samek et al., 2016).
    """

    name: ClassVar[str] = "evidence-for"
    question: ClassVar[str] = "Does it find what speaks for the class?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Samek et al., 2016, arXiv:1509.06321"
    not_for: ClassVar[str] = "methods without a sign, which name no side."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _SIGN

    absence: Absence = "replace"
    n_steps: int = 10

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named, widths = steps(evaluation, "for", self.n_steps)
        return area(taken(evaluation, named, self.absence, "target", "for"), widths)


@final
@dataclass(frozen=True)
class EvidenceAgainst(Metric):
    """How far the target rises as the most negative units go first.

    As `evidence-for`, from the other end of the order.
    """

    name: ClassVar[str] = "evidence-against"
    question: ClassVar[str] = "Does it find what speaks against the class?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Samek et al., 2016, arXiv:1509.06321, with the order reversed"
    not_for: ClassVar[str] = "methods without a sign, which name no side."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _SIGN

    absence: Absence = "replace"
    n_steps: int = 10

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named, widths = steps(evaluation, "against", self.n_steps)
        return area(taken(evaluation, named, self.absence, "target", "against"), widths)
