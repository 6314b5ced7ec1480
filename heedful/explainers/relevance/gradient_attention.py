"""Attention weighted by the target's gradient, through self- and cross-attention."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.explainers import Explainer, Group, Question
from heedful.explainers.relevance.descent import descend, is_too_large, target_slope
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_hook import Attended


@final
@dataclass(frozen=True)
class GradientAttention(Explainer):
    """Attention times its gradient, positive part, multiplied through the layers.

    Ā = mean_h (∇A ⊙ A)⁺ of every layer, R ← R + Ā R from R = I; the scores are the read-out row of R. Only this row is
    computed, from the last layer to the first, r ← r + r Ā, during the backward pass: ∇A_{s,t} = ∇o_s · v_t, so neither
    A nor ∇A is stored. If the activations do not fit in memory, the layers are recomputed (one more forward pass).

    Reference: Chefer, Gur & Wolf, *Generic Attention-model Explainability*, 2021, arXiv:2103.15679; self-attention
    Eqs. (5)–(7), cross- and co-attention Eqs. (8)–(11) with R̄ normalised by its row sums. The attention of [CLS] to
    itself is kept, as in the paper; special tokens are shown separately.
    """

    name: ClassVar[str] = "gradient-attention"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers", "gradients"})
    signed: ClassVar[bool] = False

    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents = question.recordable, question.documents
        own, source, start = model.readout(documents), None, partial(target_slope, question)
        n_sources = model.n_sources(documents)
        recompute = not n_sources and is_too_large(question)
        if n_sources:
            steps: dict[int, tuple[Attended, Tensor]] = {}
            descend(question, documents, start, False, visit=lambda number, *step: steps.update({number: step}))
            own, source = _through_both([steps[number] for number in sorted(steps)], own, n_sources)
        else:

            def down(_: int, call: Attended, gradient: Float[Tensor, "batch head query d_out"]) -> None:
                nonlocal own
                own = own + _weighed(call, gradient, own)

            descend(question, documents, start, recompute, visit=down)
        rows = model.placed(documents, own, source).double().cpu().numpy()
        return self.from_tokens(question, rows, {"forwards": 1 + recompute, "backwards": 1})


def _weighed(
    call: Attended, gradient: Float[Tensor, "batch head _ d_out"], r: Float[Tensor, "batch query"]
) -> Float[Tensor, "batch key"]:
    """r Ā, a few queries at a time."""
    pulled = r.new_zeros(r.shape[0], call.k.shape[2])
    for queries in call.portions(r):
        positive = _positive(call, gradient, queries)
        pulled += torch.einsum("bs,bst->bt", r[:, queries], positive.to(r))
    return pulled


def _positive(
    call: Attended, gradient: Float[Tensor, "batch head _ d_out"], queries: Tensor
) -> Float[Tensor, "batch row key"]:
    """Ā of some queries: mean_h (∇A ⊙ A)⁺."""
    rows = call.rows(queries)
    slopes = gradient[:, :, queries].to(rows) @ call.v.to(rows).transpose(-1, -2)
    return (rows * slopes).clamp(min=0).mean(dim=1)


def _through_both(
    steps: list[tuple[Attended, Tensor]], readout: Float[Tensor, "batch query"], n_sources: int
) -> tuple[Float[Tensor, "batch query"], Float[Tensor, "batch key"]]:
    """The rules for both streams, from the first layer to the last: relevance of the inputs of both.

    R_tt ← R_tt + Ā R_tt, R_ts ← R_ts + Ā R_ts through the decoder, R_ss ← R_ss + Ā R_ss through the encoder, and
    R_ts ← R_ts + R̄_ttᵀ Ā R̄_ss through cross-attention. In co-attention the source attends back: R_tt ← R_tt + Ā R_st
    too, and the same with s and t exchanged, both from what is below the layer. Texts of this family are short enough
    for whole matrices.
    """
    batch, n_own = readout.shape
    R_tt = torch.eye(n_own).to(readout).repeat(batch, 1, 1)
    R_ss = torch.eye(n_sources).to(readout).repeat(batch, 1, 1)
    R_ts, R_st = readout.new_zeros(batch, n_own, n_sources), readout.new_zeros(batch, n_sources, n_own)
    below = R_tt, R_ss, R_ts
    for call, gradient in steps:
        A = torch.cat([_positive(call, gradient, queries) for queries in call.portions()], dim=1).to(readout)
        if call.kind == "source":
            R_ss, R_st = R_ss + A @ R_ss, R_st + A @ R_st
        elif call.kind == "self":
            R_ts, R_tt = R_ts + A @ R_ts, R_tt + A @ R_tt
        elif call.kind == "cross":
            below = R_tt, R_ss, R_ts
            R_ts = R_ts + _normalised(R_tt).transpose(1, 2) @ A @ _normalised(R_ss)
            R_tt = R_tt + A @ R_st
        else:
            R_st = R_st + _normalised(below[1]).transpose(1, 2) @ A @ _normalised(below[0])
            R_ss = R_ss + A @ below[2]
    return torch.einsum("bs,bst->bt", readout, R_tt), torch.einsum("bs,bst->bt", readout, R_ts)


def _normalised(R: Float[Tensor, "batch query query"]) -> Float[Tensor, "batch query query"]:
    """R̄ = (R − I) with rows that sum to one, + I, Eqs. (8) and (9); a row of I does not change."""
    unit = torch.eye(R.shape[-1]).to(R)
    gained = R - unit
    total = gained.sum(dim=-1, keepdim=True)
    return gained / torch.where(total > 0, total, torch.ones_like(total)) + unit
