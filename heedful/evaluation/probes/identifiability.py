"""Could other attention weights give every head the same output?"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from heedful.evaluation.probes import AttentionUse, Finding, Probe, ProbeResult, decide
from heedful.evaluation.probes.inquiry import Inquiry
from heedful.explainers.effective_attention import value_space
from heedful.models.recording import record
from heedful.statistics.quantity import is_above, is_below, mean_quantity


@final
@dataclass(frozen=True)
class Identifiability(Probe):
    """Whether the weights of each head are the only ones with that head's output, for the values of the text.

    Weights that sum to 1 and give the same Σ_t α_t v_t differ by a vector of the left null space of [V, 1], whose
    dimension is T less its rank. Effective attention is α without its part in the null space of V, as in the method
    `effective-attention`, which shows it word by word; here its length counts. Means over all layers and heads, at the
    position that is read out.
    """

    name: ClassVar[str] = "identifiability"
    question: ClassVar[str] = "Could other attention weights give every head the same output?"
    source: ClassVar[str] = "Brunner et al., 2020, arXiv:1908.04211, Sections 3 and 4"
    use: ClassVar[AttentionUse] = "the only explanation"
    yes_counts: ClassVar[bool] = False
    shows: ClassVar[str] = (
        "Whether a head's output determines its weights. With more tokens than value dimensions it never does: many "
        "other weights give exactly the same output."
    )
    does_not_show: ClassVar[str] = (
        "That weights in the null space are wrong. It is a property of sizes, not of the decision: short texts are "
        "identifiable and long ones are not. Some of these other weights are negative, so they are no attention "
        "(Sun & Marasović, 2021, discuss effective attention)."
    )

    def measure(self, inquiry: Inquiry) -> ProbeResult:
        columns = inquiry.over_texts(self.name, lambda index: _of_text(inquiry, index))
        if "identifiable" not in columns:
            return ProbeResult((), "unknown", "No text has two words, so there is nothing to identify.")
        identifiable = mean_quantity(columns["identifiable"])
        findings = (
            Finding("Share of texts whose weights are identifiable in every head", identifiable),
            Finding("Dimension of the null space, as a share of the tokens", mean_quantity(columns["null space"])),
            Finding("Length of effective attention, as a share of attention's", mean_quantity(columns["effective"])),
        )
        numbers = f"they are identifiable in {identifiable.value:.0%} of the texts"
        return decide(
            findings,
            (is_above(identifiable, 0.5), "yes", f"Each head's output determines its weights: {numbers}."),
            (is_below(identifiable, 0.5), "no", f"Other weights give some head the same output: {numbers}."),
            (True, "unknown", f"In short texts the weights are identifiable, in long not: {numbers}."),
        )


@torch.no_grad()
def _of_text(inquiry: Inquiry, index: int) -> dict[str, float]:
    model, document = inquiry.model, inquiry.documents[index]
    if inquiry.attention(index).is_word.sum() < 2:
        return {}
    readout = model.readout([document])
    spaces, effective = [], []
    for call in record(model, [document]).calls:
        if call.kind != "self":
            continue
        space, eps = value_space(call, readout), float(torch.finfo(call.v.dtype).eps)
        effective += (space.projected[0].norm(dim=-1) / space.alpha[0].norm(dim=-1)).tolist()
        for weights, V in zip(space.alpha[0].cpu().numpy(), space.V[0].cpu().numpy(), strict=True):
            V = V[weights > 0]
            spaces.append((len(V) - _rank(np.column_stack([V, np.ones(len(V))]), eps)) / len(V))
    return {
        "identifiable": float(max(spaces) == 0),
        "null space": float(np.mean(spaces)),
        "effective": float(np.mean(effective)),
    }


def _rank(matrix: np.ndarray, eps: float) -> int:
    """The rank, up to the rounding of the model's precision."""
    lengths = np.linalg.svd(matrix, compute_uv=False)
    return int((lengths > lengths[0] * max(matrix.shape) * eps).sum())
