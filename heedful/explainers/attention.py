"""Attention weights as explanations, Section 3."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from heedful.aggregate import unit_scores
from heedful.explainers import Explainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer


@final
@dataclass(frozen=True)
class AttentionMean(Explainer):
    """Attention from [CLS], averaged over heads: α-avg, Eq. (10)."""

    name: ClassVar[str] = "attention-mean"
    needs: ClassVar[frozenset[Offer]] = frozenset({"attention"})
    signed: ClassVar[bool] = False

    def explain_batch(self, question: Question) -> list[Explanation]:
        return _from_heads(self, question, question.attention[:, -1].mean(axis=1))


@final
@dataclass(frozen=True)
class AttentionMax(Explainer):
    """Attention from [CLS], the largest over heads: α-max, Eq. (11)."""

    name: ClassVar[str] = "attention-max"
    needs: ClassVar[frozenset[Offer]] = frozenset({"attention"})
    signed: ClassVar[bool] = False

    def explain_batch(self, question: Question) -> list[Explanation]:
        return _from_heads(self, question, question.attention[:, -1].max(axis=1))


def _from_heads(explainer: Explainer, question: Question, alpha: np.ndarray) -> list[Explanation]:
    explanations = []
    for index, (document, row) in enumerate(zip(question.documents, alpha, strict=True)):
        scores, apart = unit_scores(document, explainer.unit, row)
        facts = {**apart, "forwards": 1}
        explanations.append(explainer.explanation(question, index, scores, np.zeros_like(scores), facts))
    return explanations
