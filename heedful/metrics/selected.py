"""Accuracy of the model when it reads only the strongest units of an explanation."""

from abc import abstractmethod
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


@dataclass(frozen=True)
class KeptUnits(Metric):
    """Whether the model predicts a class when it reads only the `n_kept` strongest units: 1 or 0."""

    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = "Thorne et al., 2019, arXiv:1904.10717: predictions from the selected features"
    not_for: ClassVar[str] = "comparing absences or models: texts of few words are unlike the training texts."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    absence: Absence = "replace"
    n_kept: int = 5

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if self.n_kept < 1:
            raise BadInput(f"needs n_kept ≥ 1; {self.n_kept} was given.", self.name)

    @abstractmethod
    def wanted(self, evaluation: Evaluation) -> int:
        """The class that should be predicted."""

    def measure(self, evaluation: Evaluation) -> float:
        question = replace(evaluation.question, wanted=Wanted(self.wanted(evaluation)))
        same = SamePrediction(question, 0, evaluation.values.unit, self.absence, 1)
        keep = first(evaluation.strongest, np.array([min(self.n_kept, len(evaluation.scores))]))
        return float(same(keep)[0] == same.whole)


@final
@dataclass(frozen=True)
class KeptPrediction(KeptUnits):
    """Whether the model keeps its prediction when it reads only the strongest units.

    1 or 0; the mean over texts is the accuracy from the `n_kept` strongest units against the model's own predictions.
    """

    name: ClassVar[str] = "kept-prediction"
    question: ClassVar[str] = "Does the model predict the same from the strongest units alone?"
    wants: ClassVar[frozenset[Want]] = frozenset()

    def wanted(self, evaluation: Evaluation) -> int:
        return int(evaluation.question.logits[0].argmax())


@final
@dataclass(frozen=True)
class KeptAccuracy(KeptUnits):
    """Whether the model predicts the label when it reads only the strongest units.

    1 or 0; the mean over texts is the accuracy from the `n_kept` strongest units against the labels.
    """

    name: ClassVar[str] = "kept-accuracy"
    question: ClassVar[str] = "Does the model predict the label from the strongest units alone?"
    wants: ClassVar[frozenset[Want]] = frozenset({"label"})

    def wanted(self, evaluation: Evaluation) -> int:
        label, n_classes = evaluation.label, len(evaluation.question.logits[0])
        if label is None or n_classes < 2 or not 0 <= label < n_classes:
            raise Unsupported("the label is none of the model's classes.", self.name, ": ")
        return label
