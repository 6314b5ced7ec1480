"""Attention weights as explanations, Section 3: how much the read-out position attends to each token."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Float

from heedful.errors import BadInput
from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer

NEEDS: frozenset[Offer] = frozenset({"attention"})
Some = int | Literal["all"]


@final
@dataclass(frozen=True)
class AttentionMean(Explainer):
    """Attention weights from [CLS], averaged over heads: α-avg, Eq. (10).

    In a deeper model it is averaged over layers too. `layer` and `head` choose one, counted from 0, or from the last
    by −1, −2 … A decoder attends from its last token; an encoder-decoder from its next token to the source.
    """

    name: ClassVar[str] = "attention-mean"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False
    mean_attention: ClassVar[Literal["any depth", "one layer"] | None] = "any depth"
    summary_group: ClassVar[tuple[str, int] | None] = ("attention", 1)

    layer: Some = "all"
    head: Some = "all"

    def explain_batch(self, question: Question) -> list[Explanation]:
        chosen = _chosen(question.attention, self.layer, self.head)
        return self.from_tokens(question, chosen.mean(axis=(1, 2)), {"forwards": 1})


@final
@dataclass(frozen=True)
class AttentionMax(Explainer):
    """Attention weights from [CLS], maximum over heads and layers: α-max, Eq. (11)."""

    name: ClassVar[str] = "attention-max"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False

    layer: Some = "all"
    head: Some = "all"

    def explain_batch(self, question: Question) -> list[Explanation]:
        chosen = _chosen(question.attention, self.layer, self.head)
        return self.from_tokens(question, chosen.max(axis=(1, 2)), {"forwards": 1})


@final
@dataclass(frozen=True)
class AttentionSum(Explainer):
    """Attention weights from [CLS], summed over heads and layers."""

    name: ClassVar[str] = "attention-sum"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False
    mean_attention: ClassVar[Literal["any depth", "one layer"] | None] = "any depth"
    summary_group: ClassVar[tuple[str, int] | None] = ("attention", 3)

    layer: Some = "all"
    head: Some = "all"

    def explain_batch(self, question: Question) -> list[Explanation]:
        chosen = _chosen(question.attention, self.layer, self.head)
        return self.from_tokens(question, chosen.sum(axis=(1, 2)), {"forwards": 1})


@final
@dataclass(frozen=True)
class AttentionLast(Explainer):
    """Attention weights from [CLS] in the last layer, averaged over heads."""

    name: ClassVar[str] = "attention-last"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False
    mean_attention: ClassVar[Literal["any depth", "one layer"] | None] = "one layer"
    summary_group: ClassVar[tuple[str, int] | None] = ("attention", 2)

    head: Some = "all"

    def explain_batch(self, question: Question) -> list[Explanation]:
        chosen = _chosen(question.attention, -1, self.head)
        return self.from_tokens(question, chosen.mean(axis=(1, 2)), {"forwards": 1})


def _chosen(
    attention: Float[np.ndarray, "batch layer head key"], layer: Some, head: Some
) -> Float[np.ndarray, "batch _ _ key"]:
    for axis, (name, wanted) in enumerate((("layer", layer), ("head", head)), start=1):
        n = attention.shape[axis]
        if isinstance(wanted, str):
            continue
        if not -n <= wanted < n:
            raise BadInput(f"There is no {name} {wanted}; the model has {n}, counted from 0 (or −1 for the last).")
        attention = np.take(attention, [wanted], axis=axis)
    return attention
