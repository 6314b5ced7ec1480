"""Attention multiplied through the layers."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch

from heedful.errors import BadInput, Unsupported
from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer


@final
@dataclass(frozen=True)
class Rollout(Explainer):
    """Attention rollout: product over layers of ½ I + ½ mean_h A, read-out row.

    `residual` is the weight of I, the skip connection; 0 leaves it out. The product is computed from the last layer
    to the first, one row at a time: r ← ½ r + ½ r A. Scores, special tokens and padding together sum to one.

    Reference: Abnar & Zuidema, *Quantifying Attention Flow in Transformers*, 2020, arXiv:2005.00928.
    Beyond the paper: in an encoder-decoder, cross-attention passes its share to the source, and the rollout continues
    through the encoder; the remaining share belongs to the beginning of the output.
    """

    name: ClassVar[str] = "rollout"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers"})
    signed: ClassVar[bool] = False
    mean_attention: ClassVar[Literal["any depth", "one layer"] | None] = "one layer"
    summary_group: ClassVar[tuple[str, int] | None] = ("attention", 4)

    residual: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.residual < 1:
            raise BadInput(f"rollout needs a residual of at least 0 and below 1; {self.residual:g} was given.")

    @torch.no_grad()
    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents = question.recordable, question.documents
        if model.co_attends:
            raise Unsupported("is not defined for co-attention; gradient-attention is.", self.name)
        own, stays, goes = model.readout(documents), self.residual, 1 - self.residual
        source = own.new_zeros(len(documents), model.n_sources(documents))
        for call in reversed(question.recording.calls):
            if call.kind == "source":
                source = stays * source + goes * call.pulled(source).mean(dim=1)
            elif call.kind == "cross":
                source = source + goes * call.pulled(own).mean(dim=1)
                own = stays * own
            else:
                own = stays * own + goes * call.pulled(own).mean(dim=1)
        rows = model.placed(documents, own, source if source.shape[1] else None)
        return self.from_tokens(question, rows.cpu().numpy(), {"forwards": 1})
