"""The control that every explainer must beat."""

from dataclasses import dataclass
from typing import ClassVar, final

from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.masks import generator


@final
@dataclass(frozen=True)
class Random(Explainer):
    """Random scores, independent of the model: the control."""

    name: ClassVar[str] = "random"
    group: ClassVar[Group] = "control"
    needs: ClassVar[frozenset[Offer]] = frozenset()
    signed: ClassVar[bool] = True

    seed: int = 0

    def explain_batch(self, question: Question) -> list[Explanation]:
        explanations = []
        for index, document in enumerate(question.documents):
            scores = generator(self.seed, document).standard_normal(document.n_units(self.unit))
            explanations.append(self.explanation(question, index, scores, None, {}))
        return explanations
