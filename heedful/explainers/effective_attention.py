"""The part of attention that can change the output."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.explainers import Explainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_hook import Attended


@final
@dataclass(frozen=True)
class EffectiveAttention(Explainer):
    """Attention without the part that cannot change the output (null space of V).

    With more tokens than value dimensions, many rows of attention give the same output α V. The shortest of them is α
    minus its projection on the left null space of V. Scores are averaged over heads and layers, at the read-out row.

    Reference: Brunner et al., *On Identifiability in Transformers*, 2020, arXiv:1908.04211, Section 4.
    Differs from the paper: the absolute value is taken, since a sign here says nothing about the target; V is taken
    with its bias as the model computes it, and before W_O, which does not change the null space if it has full rank.
    """

    name: ClassVar[str] = "effective-attention"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers"})
    signed: ClassVar[bool] = False

    @torch.no_grad()
    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents = question.recordable, question.documents
        readout, n_sources = model.readout(documents), model.n_sources(documents)
        kind = "cross" if n_sources else "self"
        layers = [_effective(call, readout) for call in question.recording.calls if call.kind == kind]
        rows = torch.stack(layers).mean(dim=0)
        nothing = torch.zeros_like(readout)
        placed = model.placed(documents, nothing, rows) if n_sources else model.placed(documents, rows, None)
        return self.from_tokens(question, placed.cpu().numpy(), {"forwards": 1})


def _effective(call: Attended, readout: Float[Tensor, "batch query"]) -> Float[Tensor, "batch key"]:
    """mean_h |α's projection on the column space of V|; masked keys are not part of V."""
    alpha = call.pulled(readout)
    V = torch.where((alpha > 0)[..., None], call.v.to(readout), 0.0)
    U, lengths, _ = torch.linalg.svd(V, full_matrices=False)
    eps = torch.finfo(call.v.dtype).eps
    inside = lengths > lengths[..., :1] * max(V.shape[-2:]) * eps
    U = U * inside[..., None, :]
    projected = torch.einsum("bhtd,bhsd,bhs->bht", U, U, alpha)
    return projected.abs().mean(dim=1)
