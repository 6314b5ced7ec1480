"""Agreement of the strongest units with human rationales."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool

from heedful.errors import BadInput
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer

Strongest = int | Literal["marked"]
"""How many of the strongest units are selected: a number, or as many as people marked."""

_NEEDS: frozenset[Offer] = frozenset()
_WANTS: frozenset[Want] = frozenset({"rationale"})
_SOURCE = "DeYoung et al., 2020, arXiv:1911.03429, Agreement with human rationales"
_NOT_FOR = (
    "faithfulness: a model may use other evidence than people do. "
    "Also not for comparing splits or data sets, in which people marked different shares of the text."
)


def _marked(evaluation: Evaluation) -> Bool[np.ndarray, "unit"]:
    rationale = evaluation.rationale
    assert rationale is not None
    if rationale.shape != evaluation.scores.shape:
        raise BadInput(
            f"The rationale has {len(rationale)} units and the scores {len(evaluation.scores)}; they must be equal."
        )
    if rationale.all() or not rationale.any():
        which = "every unit" if rationale.any() else "no unit"
        raise BadInput(f"People marked {which} of this text, so all explanations would score the same.")
    return rationale


def _overlap(evaluation: Evaluation, metric: "TokenF1 | Iou") -> tuple[int, int, int]:
    """The number of units both selected and marked, of selected units, and of marked units."""
    marks = _marked(evaluation)
    n_marked = int(marks.sum())
    wanted = n_marked if metric.n_strongest == "marked" else metric.n_strongest
    if wanted < 1:
        raise BadInput(f"needs n_strongest ≥ 1; {wanted} was given.", metric.name)
    named = evaluation.strongest[:wanted]
    return int(marks[named].sum()), len(named), n_marked


@final
@dataclass(frozen=True)
class TokenF1(Metric):
    """F1 of the strongest units against the human rationale.

        2 |selected ∩ marked| / (|selected| + |marked|)

    People mark the evidence for a label; the explanation may have another target, and some methods are unsigned. So the
    strongest units of either sign are selected, ties broken at random. As many are selected as people marked, so that
    precision, recall and F1 are equal.
    Differs from the source, which selects the same number in every text, the mean length of the human rationales.
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
    """Intersection over union of the strongest units and the human rationale.

        |selected ∩ marked| / |selected ∪ marked| = F1 / (2 − F1)

    In one text it ranks explanations as `token-f1` does; means over texts differ.
    Differs from the source, which compares spans and counts those that overlap a marked span by half.
    """

    name: ClassVar[str] = "iou"
    question: ClassVar[str] = "How much do the strongest units overlap with those that people marked?"
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
    """Average precision of the ranking by |score| against the human rationale.

        Σ_k (recall_k − recall_{k−1}) precision_k, over the distinct sizes |score| from the largest on

    Equal scores enter together, so that their order does not matter. Random scores get the share of marked units.
    Differs from the source, which interpolates the curve linearly and so overestimates the area.
    """

    name: ClassVar[str] = "auprc"
    question: ClassVar[str] = "Are the units that people marked ranked first?"
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
