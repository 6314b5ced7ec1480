"""Change of the output when the strongest units are removed, or when only they are kept."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Use, Want
from heedful.models import Offer
from heedful.perturb.masks import counts_of, first

Side = Literal["any", "for", "against"]
"""Which units are removed first: the strongest of either sign, the most positive, the most negative."""
Measure = Literal["target", "probability"]
"""Whether changes of the target or of its probability are measured."""

ERASER = (0.01, 0.05, 0.10, 0.20, 0.50)
"""The shares of DeYoung et al. (2020), Section 4."""
_MASKS: frozenset[Offer] = frozenset({"masks"})
_NOTHING: frozenset[Want] = frozenset()
_SIGN: frozenset[Want] = frozenset({"sign"})
_RANKING: tuple[Use, ...] = ("rank words", "cheap screening")


def ranked(evaluation: Evaluation, evidence: Side) -> Int[np.ndarray, "unit"]:
    """The units in order of importance according to the explanation; ties are broken at random."""
    if evidence == "any":
        return evaluation.strongest
    if not evaluation.explanation.signed:
        raise Unsupported(
            f"has unsigned scores; evidence {evidence} the target needs signed ones.", evaluation.explanation.method
        )
    return evaluation.highest if evidence == "for" else evaluation.lowest


def values_on(
    evaluation: Evaluation, keep: Bool[np.ndarray, "step unit"], absence: Absence, measure: Measure
) -> Float[np.ndarray, "step"]:
    """The target, or its probability, on masks."""
    if measure == "target":
        return evaluation.values(keep, absence)
    if evaluation.explanation.target.against is not None:
        raise Unsupported("A contrast of two classes has no probability; set measure_of to target.")
    return evaluation.values(keep, absence, "probability")


def loss_without(
    evaluation: Evaluation, named: Bool[np.ndarray, "step unit"], absence: Absence, measure: Measure, evidence: Side
) -> Float[np.ndarray, "step"]:
    """How far f changes when the selected units are removed.

    Effects of units for and against the target would cancel if the units were removed together. So units whose removal
    lowers f and units whose removal raises it are removed separately, and both changes are added. The sign of a unit
    comes from the model, so signed and unsigned methods are measured by the same rule.
    """
    whole = values_on(evaluation, np.ones((1, named.shape[1]), dtype=bool), absence, measure)[0]
    if evidence != "any":
        lost = whole - values_on(evaluation, ~named, absence, measure)
        return lost if evidence == "for" else -lost
    helps = evaluation.values.one_out(absence) > 0
    sides = values_on(evaluation, ~np.concatenate([named & helps, named & ~helps]), absence, measure)
    return np.abs(whole - sides).reshape(2, -1).sum(axis=0)


def gain_from(
    evaluation: Evaluation, named: Bool[np.ndarray, "step unit"], absence: Absence, measure: Measure, evidence: Side
) -> Float[np.ndarray, "step"]:
    """How far f is from f(∅) when only the selected units are kept; both sides separately, as in `loss_without`."""
    empty = values_on(evaluation, np.zeros((1, named.shape[1]), dtype=bool), absence, measure)[0]
    if evidence != "any":
        gained = values_on(evaluation, named, absence, measure) - empty
        return gained if evidence == "for" else -gained
    helps = evaluation.values.one_out(absence) > 0
    sides = values_on(evaluation, np.concatenate([named & helps, named & ~helps]), absence, measure)
    return np.abs(sides - empty).reshape(2, -1).sum(axis=0)


def curve_steps(
    evaluation: Evaluation, evidence: Side, n_steps: int
) -> tuple[Bool[np.ndarray, "step unit"], np.ndarray]:
    """The units selected at each step of a curve from no unit to all, and the width of every step."""
    if n_steps < 1:
        raise BadInput(f"A curve needs n_steps ≥ 1; {n_steps} was given.")
    counts = np.unique(np.round(np.arange(n_steps + 1) / n_steps * len(evaluation.scores)).astype(np.int64))
    return first(ranked(evaluation, evidence), counts), np.diff(counts) / len(evaluation.scores)


def area(heights: Float[np.ndarray, "step"], widths: Float[np.ndarray, "step-1"]) -> float:
    """The mean height of a curve, by the trapezoidal rule."""
    return float((heights[1:] + heights[:-1]) @ widths / 2)


@final
@dataclass(frozen=True)
class Deletion(Metric):
    """Mean change of the output as the strongest units are removed first.

    The area over the perturbation curve, the mean over k of f(x) − f(x without the k strongest) (Samek et al., 2016).
    Differs from the source: by default the strongest units of either sign are removed and absolute changes added
    (`loss_without`), so that unsigned methods are measured by the same rule; `evidence="for"` is the published form.
    """

    name: ClassVar[str] = "deletion"
    question: ClassVar[str] = "Does the output change when the strongest units are removed?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Samek et al., 2016, arXiv:1509.06321; Petsiuk et al., 2018, arXiv:1806.07421"
    not_for: ClassVar[str] = "comparing models or absences: masked texts are unlike the training texts."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _NOTHING
    uses: ClassVar[tuple[Use, ...]] = _RANKING
    in_target: ClassVar[bool] = True

    absence: Absence = "replace"
    n_steps: int = 10
    evidence: Side = "any"
    measure_of: Measure = "target"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named, widths = curve_steps(evaluation, self.evidence, self.n_steps)
        return area(loss_without(evaluation, named, self.absence, self.measure_of, self.evidence), widths)


@final
@dataclass(frozen=True)
class Insertion(Metric):
    """Mean change from the empty text as the strongest units are added first.

    The mean over k of f(the k strongest) − f(∅) (Petsiuk et al., 2018). Differs from the source as `deletion` does.
    """

    name: ClassVar[str] = "insertion"
    question: ClassVar[str] = "Do the strongest units alone produce the output?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Petsiuk et al., 2018, arXiv:1806.07421"
    not_for: ClassVar[str] = "comparing models or absences: texts of few words are unlike the training texts."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _NOTHING
    uses: ClassVar[tuple[Use, ...]] = _RANKING
    in_target: ClassVar[bool] = True

    absence: Absence = "replace"
    n_steps: int = 10
    evidence: Side = "any"
    measure_of: Measure = "target"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named, widths = curve_steps(evaluation, self.evidence, self.n_steps)
        return area(gain_from(evaluation, named, self.absence, self.measure_of, self.evidence), widths)


@final
@dataclass(frozen=True)
class Comprehensiveness(Metric):
    """Change of the output without the strongest 1, 5, 10, 20 and 50 % of units.

    The mean of f(x) − f(x without them) over ERASER's shares (DeYoung et al., 2020, Section 4). Differs from the
    source: by default as in `deletion` for either sign, and f is the target, not its probability; `evidence="for"` and
    `measure_of="probability"` give what ferret computes. The paper's formula includes a sixth share, 0 %, so its value
    is 5/6 of this one.
    """

    name: ClassVar[str] = "comprehensiveness"
    question: ClassVar[str] = "Are the strongest units necessary for the output?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "DeYoung et al., 2020, arXiv:1911.03429"
    not_for: ClassVar[str] = "comparing models or absences; texts with repeated evidence."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _NOTHING
    uses: ClassVar[tuple[Use, ...]] = _RANKING
    in_target: ClassVar[bool] = True

    absence: Absence = "replace"
    evidence: Side = "any"
    measure_of: Measure = "target"

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named = first(ranked(evaluation, self.evidence), counts_of(np.array(ERASER), len(evaluation.scores)))
        return float(loss_without(evaluation, named, self.absence, self.measure_of, self.evidence).mean())


@final
@dataclass(frozen=True)
class Sufficiency(Metric):
    """Distance from the original output when only the strongest units are kept.

    The mean of |f(x) − f(only they)| over ERASER's shares (DeYoung et al., 2020, Section 4). Differs from the source:
    absolute distances, and f is the target; `evidence="for"` with `measure_of="probability"` is the published form.
    """

    name: ClassVar[str] = "sufficiency"
    question: ClassVar[str] = "Are the strongest units sufficient for the output?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "DeYoung et al., 2020, arXiv:1911.03429"
    not_for: ClassVar[str] = "comparing models or absences: texts of few words are unlike the training texts."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _NOTHING
    uses: ClassVar[tuple[Use, ...]] = _RANKING
    in_target: ClassVar[bool] = True

    absence: Absence = "replace"
    evidence: Side = "any"
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
    """Mean decrease of the output as the most positive units are removed first.

    The area over the curve of `deletion` with the order of signed scores, its published form (Samek et al., 2016).
    """

    name: ClassVar[str] = "evidence-for"
    question: ClassVar[str] = "Does it find the evidence for the target?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Samek et al., 2016, arXiv:1509.06321"
    not_for: ClassVar[str] = "unsigned methods, which cannot separate evidence for and against."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _SIGN
    in_target: ClassVar[bool] = True

    absence: Absence = "replace"
    n_steps: int = 10

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named, widths = curve_steps(evaluation, "for", self.n_steps)
        return area(loss_without(evaluation, named, self.absence, "target", "for"), widths)


@final
@dataclass(frozen=True)
class EvidenceAgainst(Metric):
    """Mean increase of the output as the most negative units are removed first.

    As `evidence-for`, with the reversed order.
    """

    name: ClassVar[str] = "evidence-against"
    question: ClassVar[str] = "Does it find the evidence against the target?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Samek et al., 2016, arXiv:1509.06321, with the order reversed"
    not_for: ClassVar[str] = "unsigned methods, which cannot separate evidence for and against."
    needs: ClassVar[frozenset[Offer]] = _MASKS
    wants: ClassVar[frozenset[Want]] = _SIGN
    uses: ClassVar[tuple[Use, ...]] = ("find the evidence against",)
    in_target: ClassVar[bool] = True

    absence: Absence = "replace"
    n_steps: int = 10

    def __post_init__(self) -> None:
        check_absence(self.absence)

    def measure(self, evaluation: Evaluation) -> float:
        named, widths = curve_steps(evaluation, "against", self.n_steps)
        return area(loss_without(evaluation, named, self.absence, "target", "against"), widths)
