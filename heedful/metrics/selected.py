"""Accuracy of the model when it reads only the strongest units of an explanation."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.explainers.anchors import SamePrediction
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.models.question import Wanted
from heedful.perturb.masks import first

_NEEDS: frozenset[Offer] = frozenset({"masks"})
_THORNE = "Thorne et al., 2019, arXiv:1904.10717: predictions from the selected features"
_NOT_FOR = "comparing absences or models: texts of few words are unlike the training texts."


def _check(metric: "KeptPrediction | KeptAccuracy") -> None:
    check_absence(metric.absence)
    if metric.n_kept < 1:
        raise BadInput(f"needs n_kept ≥ 1; {metric.n_kept} was given.", metric.name)


def _predicts(metric: "KeptPrediction | KeptAccuracy", evaluation: Evaluation, label: int) -> float:
    """1 if the model predicts the class from the strongest units alone, else 0."""
    question = replace(evaluation.question, wanted=Wanted(label))
    same = SamePrediction(question, 0, evaluation.values.unit, metric.absence, 1)
    keep = first(evaluation.strongest, np.array([min(metric.n_kept, len(evaluation.scores))]))
    return float(same(keep)[0] == same.whole)


@final
@dataclass(frozen=True)
class KeptPrediction(Metric):
    """Whether the model keeps its prediction when it reads only the strongest units.

    1 or 0; the mean over texts is the accuracy from the `n_kept` strongest units against the model's own predictions.
    """

    name: ClassVar[str] = "kept-prediction"
    question: ClassVar[str] = "Does the model predict the same from the strongest units alone?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _THORNE
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    absence: Absence = "replace"
    n_kept: int = 5

    def __post_init__(self) -> None:
        _check(self)

    def measure(self, evaluation: Evaluation) -> float:
        return _predicts(self, evaluation, int(evaluation.question.logits[0].argmax()))


@final
@dataclass(frozen=True)
class KeptAccuracy(Metric):
    """Whether the model predicts the label when it reads only the strongest units.

    1 or 0; the mean over texts is the accuracy from the `n_kept` strongest units against the labels.
    """

    name: ClassVar[str] = "kept-accuracy"
    question: ClassVar[str] = "Does the model predict the label from the strongest units alone?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _THORNE
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = frozenset({"label"})
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    absence: Absence = "replace"
    n_kept: int = 5

    def __post_init__(self) -> None:
        _check(self)

    def measure(self, evaluation: Evaluation) -> float:
        label, n_classes = evaluation.label, len(evaluation.question.logits[0])
        assert label is not None
        if n_classes < 2 or not 0 <= label < n_classes:
            raise Unsupported("the label is none of the model's classes.", self.name, ": ")
        return _predicts(self, evaluation, label)
