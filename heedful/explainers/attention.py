"""Attention weights as explanations, Section 3: how much the read-out position attends to each token."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
import torch
from jaxtyping import Float

from heedful.errors import Unsupported
from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_maps.operators import Looks, OverHeads, OverLayers, Reading, combined, whole_looks
from heedful.models.recording import Recordable

NEEDS: frozenset[Offer] = frozenset({"attention"})
Some = int | Literal["all"]


@final
@dataclass(frozen=True)
class Attention(Explainer):
    """Attention with any operators over heads, layers and rows (Mylonas et al.).

    Of every map one number per token is taken, `rows`: the attention of the read-out position to it ("from-cls"), its
    attention to the read-out position ("to-cls"), or the mean or maximum of its column (the attention that it gets) or
    of its row (the attention that it gives). Then `heads` are combined, then `layers`; a number chooses one, counted
    from 0, or from the last by −1, −2 … The product over heads is elementwise; that over layers is the matrix product,
    from the last layer to the first, of which `rows` is taken. Means and maxima are over the text's own tokens.

    Where rows sum to one over these tokens, "row-mean" is the same for all of them unless `heads` is "max" or
    "product". In a causal model only the last token attends to the position that is read out.

    The defaults are `attention-mean`; `compare` uses this method only if it is named.

    Reference: Mylonas, Mollas & Tsoumakas, *An Attention Matrix for Every Decision*, 2022, arXiv:2209.10876.
    Differs from the paper: maps are read before heads and layers are combined (`models/attention_maps/operators.py`).
    """

    name: ClassVar[str] = "attention"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = False
    opt_in: ClassVar[bool] = True

    heads: OverHeads = "mean"
    layers: OverLayers = "mean"
    rows: Reading = "from-cls"

    @torch.no_grad()
    def explain_batch(self, question: Question) -> list[Explanation]:
        if self.rows == "from-cls" and self.layers != "product":
            return self.from_tokens(question, _combined(question, self.heads, self.layers), {"forwards": 1})
        if not isinstance(question.model, Recordable):
            raise Unsupported(
                'has no whole maps of this model\'s attention; use rows="from-cls" and no product of layers.', self.name
            )
        every = whole_looks(question)
        rows = np.concatenate([looks.placed(self._read(looks)).double().cpu().numpy() for looks in every])
        return self.from_tokens(question, rows, {"forwards": 1 if every[0].is_whole else 2})

    def _read(self, looks: Looks) -> Float[torch.Tensor, "batch _"]:
        if self.layers == "product":
            return looks.read_product(self.rows, self.heads)
        by_layer = combined(looks.read(self.rows), self.heads, 2, "head")
        return combined(by_layer, self.layers, 1, "layer")


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
        return self.from_tokens(question, _combined(question, self.head, self.layer, "mean"), {"forwards": 1})


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
        return self.from_tokens(question, _combined(question, self.head, self.layer, "max"), {"forwards": 1})


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
        return self.from_tokens(question, _combined(question, self.head, self.layer, "sum"), {"forwards": 1})


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
        return self.from_tokens(question, _combined(question, self.head, "last", "mean"), {"forwards": 1})


def _combined(
    question: Question, heads: int | str, layers: int | str, of_all: str = "mean"
) -> Float[np.ndarray, "batch token"]:
    """The attention from the read-out position; "all" stands for the operator `of_all`."""
    heads, layers = (of_all if how == "all" else how for how in (heads, layers))
    by_layer = combined(torch.from_numpy(question.attention), heads, 2, "head")
    return combined(by_layer, layers, 1, "layer").numpy()
