"""Norms of the vectors that attention adds to the read-out position."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import BadInput
from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_hook import Attended, projection

_KEYS, _QUERIES = 128, 64


@final
@dataclass(frozen=True)
class ValueNorms(Explainer):
    """Norm of the vector each token writes into the read-out: ‖Σ_h α_h v_h W_O‖.

    Attention times its value vector: a token with much attention but a short value vector has a
    low score. Averaged over layers; `layer` chooses one, counted from 0, or −1 for the last.

    Reference: Kobayashi et al., *Attention is Not Only a Weight*, 2020, arXiv:2004.10102, Eq. (5), heads summed inside
    the norm as in their Section 5.
    """

    name: ClassVar[str] = "value-norms"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers"})
    signed: ClassVar[bool] = False

    layer: int | Literal["all"] = "all"

    @torch.no_grad()
    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents = question.recordable, question.documents
        readout, n_sources = model.readout(documents), model.n_sources(documents)
        calls = [call for call in question.recording.calls if call.kind == ("cross" if n_sources else "self")]
        if self.layer != "all":
            if not -len(calls) <= self.layer < len(calls):
                raise BadInput(f"There is no layer {self.layer}; the model has {len(calls)}, counted from 0.")
            calls = [calls[self.layer]]
        rows = torch.stack([_norms(call, readout) for call in calls]).mean(dim=0)
        nothing = torch.zeros_like(readout)
        placed = model.placed(documents, nothing, rows) if n_sources else model.placed(documents, rows, None)
        return self.from_tokens(question, placed.cpu().numpy(), {"forwards": 1})


def _norms(call: Attended, readout: Float[Tensor, "batch query"]) -> Float[Tensor, "batch key"]:
    """Σ_s r_s ‖Σ_h α_{h,s,t} f_h(x_t)‖ with f_h(x_t) = v_{h,t} W_O, a few keys and queries at a time."""
    norms = readout.new_zeros(readout.shape[0], call.k.shape[2])
    queries = readout.any(dim=0).nonzero()[:, 0]
    for start in range(0, norms.shape[1], _KEYS):
        keys = slice(start, start + _KEYS)
        f = torch.einsum("bhtd,hde->bthe", call.v[:, :, keys], projection(call).to(call.v))
        for some in queries.split(_QUERIES):
            written = torch.einsum("bhst,bthe->bste", call.rows(some)[..., keys].to(f), f)
            norms[:, keys] += torch.einsum("bs,bst->bt", readout[:, some], written.norm(dim=-1).to(readout))
    return norms
