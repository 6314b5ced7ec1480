"""The part of attention that can change the output."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_hook import Attended
from heedful.models.recording import rounding

_EQUAL = 1e-12


@final
@dataclass(frozen=True)
class EffectiveAttention(Explainer):
    """Attention without the part that cannot change the output (null space of V).

    With more tokens than value dimensions, many rows of attention give the same output α V. The shortest of them is α
    minus its projection on the left null space of V. Scores are averaged over heads and layers, at the read-out row.

    Reference: Brunner et al., *On Identifiability in Transformers*, 2020, arXiv:1908.04211, Section 4.
    Differs from the paper: the absolute value is taken, since a sign here says nothing about the target; V is taken
    with its bias as the model computes it, and before W_O, which does not change the null space if it has full rank.
    Values that are nearly equal make the null space uncertain; `error` bounds this for models in single precision.
    """

    name: ClassVar[str] = "effective-attention"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers"})
    signed: ClassVar[bool] = False

    @torch.no_grad()
    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents = question.recordable, question.documents
        readout, n_sources = model.readout(documents), model.n_sources(documents)
        kind = "cross" if n_sources else "self"
        layers = [_effective(call, readout) for call in question.recording.calls if call.kind == kind]
        rows, errors = (torch.stack(part).mean(dim=0) for part in zip(*layers, strict=True))
        nothing = torch.zeros_like(readout)
        placed, errors = (
            model.placed(documents, nothing, part) if n_sources else model.placed(documents, part, None)
            for part in (rows, errors)
        )
        return self.from_tokens(question, placed.cpu().numpy(), {"forwards": 1}, errors.cpu().numpy())


@final
class ValueSpace(NamedTuple):
    """The attention of the positions that are read out, and its projection on the column space of V.

    Keys without attention are no part of V. U and `lengths` are its singular vectors and values; a direction that is
    not longer than rounding is not `inside` of the space.
    """

    alpha: Float[Tensor, "batch head key"]
    projected: Float[Tensor, "batch head key"]
    """Effective attention, with its sign."""
    V: Float[Tensor, "batch head key d_out"]
    U: Float[Tensor, "batch head key _"]
    lengths: Float[Tensor, "batch head _"]
    inside: Bool[Tensor, "batch head _"]


def value_space(call: Attended, readout: Float[Tensor, "batch query"]) -> ValueSpace:
    """The attention of a layer, α, and its part in the column space of its values: the shortest with the output α V."""
    alpha = call.pulled(readout)
    V = torch.where((alpha > 0)[..., None], call.v.to(readout), 0.0)
    U, lengths, _ = torch.linalg.svd(V, full_matrices=False)
    inside = lengths > lengths[..., :1] * max(V.shape[-2:]) * torch.finfo(call.v.dtype).eps
    projected = torch.einsum("bhtd,bhd->bht", U, torch.einsum("bhsd,bhs->bhd", U, alpha) * inside)
    return ValueSpace(alpha, projected, V, U, lengths, inside)


def _effective(
    call: Attended, readout: Float[Tensor, "batch query"]
) -> tuple[Float[Tensor, "batch key"], Float[Tensor, "batch key"]]:
    """mean_h |α's projection on the column space of V|, and its error by rounding.

    Rounding turns a singular direction by about the rounding of a value over the singular value, each at random;
    one that is shorter than the rounding may be there or not.
    """
    alpha, projected, V, U, lengths, inside = value_space(call, readout)
    seen, along = alpha > 0, torch.einsum("bhsd,bhs->bhd", U, alpha)
    size = V.square().sum(dim=(-2, -1), keepdim=True)[..., 0] / seen.sum(dim=-1, keepdim=True)
    turned = (rounding(call.v.dtype) * size.sqrt() / lengths.clamp(min=1e-300)).clamp(max=1.0)
    # What is outside of the column space, of α and of each token: both are 0 if no two values depend on each other.
    outside = (alpha - projected).square().sum(dim=-1, keepdim=True)
    of_token = (seen.to(U) - (U.square() * inside[..., None, :]).sum(dim=-1)).clamp(min=0)
    error = torch.einsum("bhtd,bhd->bht", U.square(), (turned * inside).square() * outside)
    error = (error + of_token * (turned * inside * along).square().sum(dim=-1, keepdim=True)).sqrt()
    # Values that are equal in every bit are equal without rounding too.
    doubtful = (turned == 1) & (lengths > _EQUAL * lengths[..., :1])
    error = error + torch.einsum("bhtd,bhd->bht", U.abs(), torch.where(doubtful, along.abs(), 0.0))
    return projected.abs().mean(dim=1), error.mean(dim=1)
