"""Whether the units that an explanation names are those that people marked."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool

from heedful.errors import BadInput
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer

Strongest = int | Literal["marked"]
"""How many of the strongest units an explanation names: a number, or as many as people marked."""

_NEEDS: frozenset[Offer] = frozenset()
_WANTS: frozenset[Want] = frozenset({"rationale"})
_SOURCE = "DeYoung et al., 2020, arXiv:1911.03429, Agreement with human rationales"
_NOT_FOR = (
    "saying what the model does: a model may be right for reasons that people would not give. "
    "Nor for comparing splits or data sets: how much is marked differs, and the number with it."
)


def _marked(evaluation: Evaluation) -> Bool[np.ndarray, "unit"]:
    rationale = evaluation.rationale
    assert rationale is not None
    if rationale.shape != evaluation.scores.shape:
        raise BadInput(f"The marks are on {len(rationale)} units and the scores on {len(evaluation.scores)}.")
    if rationale.all() or not rationale.any():
        which = "every unit" if rationale.any() else "no unit"
        raise BadInput(f"People marked {which} of this text, so all explanations would be alike.")
    return rationale


def _overlap(evaluation: Evaluation, metric: "TokenF1 | Iou") -> tuple[int, int, int]:
    """How many units are both named and marked, how many named, how many marked."""
    marks = _marked(evaluation)
    n_marked = int(marks.sum())
    wanted = n_marked if metric.n_strongest == "marked" else metric.n_strongest
    if wanted < 1:
        raise BadInput(f"{metric.name} needs at least 1 unit; n_strongest is {wanted}.")
    named = evaluation.strongest[:wanted]
    return int(marks[named].sum()), len(named), n_marked


@final
@dataclass(frozen=True)
class TokenF1(Metric):
    """F1 of the strongest units against those that people marked.

        2 |named ∩ marked| / (|named| + |marked|)

    People mark the evidence for a label; the explanation may be of another target, and some methods give no sign. So
    for all of them the strongest are those of either sign, equals by lot. As many are named as people marked, so that
    precision, recall and F1 are one number.
    Differs from the source: its number is one for the whole data set, from the mean length of the human rationales.
    """

    name: ClassVar[str] = "token-f1"
    question: ClassVar[str] = "Are the strongest units those that people marked?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    n_strongest: Strongest = "marked"

    def measure(self, evaluation: Evaluation) -> float:
        both, n_named, n_marked = _overlap(evaluation, self)
        return 2 * both / (n_named + n_marked)


@final
@dataclass(frozen=True)
class Iou(Metric):
    """Units both strongest and marked by people, over units that are either.

        |named ∩ marked| / |named ∪ marked| = F1 / (2 − F1)

    In one text it orders explanations as `token-f1` does; the means over texts differ, as it gives less for a half.
    Differs from the source: it takes runs of units one by one, and counts those that share half with a marked run.
    """

    name: ClassVar[str] = "iou"
    question: ClassVar[str] = "How far do the strongest units and those that people marked coincide?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    n_strongest: Strongest = "marked"

    def measure(self, evaluation: Evaluation) -> float:
        both, n_named, n_marked = _overlap(evaluation, self)
        return both / (n_named + n_marked - both)


@final
@dataclass(frozen=True)
class Auprc(Metric):
    """Average precision of the ranking by size against what people marked.

        Σ_k (recall_k − recall_{k−1}) precision_k, over the distinct sizes |score| from the largest on

    Equal scores enter together, so that their order does not matter. Where nothing is known it is the share marked.
    Differs from the source: it joins the points of the curve by straight lines, which no choice of units attains.
    """

    name: ClassVar[str] = "auprc"
    question: ClassVar[str] = "Do the units that people marked come first in the ranking?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def measure(self, evaluation: Evaluation) -> float:
        marks, sizes = _marked(evaluation), np.abs(evaluation.scores)
        order = np.argsort(-sizes, kind="stable")
        last_of_its_size = np.append(np.diff(sizes[order]) != 0, True)
        hits = np.cumsum(marks[order])[last_of_its_size]
        n_named = np.flatnonzero(last_of_its_size) + 1
        return float((np.diff(hits, prepend=0) / marks.sum() * hits / n_named).sum())
