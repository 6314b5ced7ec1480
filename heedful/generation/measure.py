"""What is measured of every token that a language model writes: its log-probability, its logit, or a divergence."""

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

MeasureName = Literal["log-probability", "logit", "kl", "entropy"]
"""Of every written token log p, or its logit; of the distribution it was drawn from, KL(p ‖ p without the context) or
the entropy −Σ p log p."""
_CELLS = 1_000_000
"""Logits that are read at once where no gradient is needed: more would not fit into the cache."""


@final
@dataclass(frozen=True, eq=False)
class Measure:
    """What is measured, and for "kl" the log-probabilities of every token without the context."""

    name: MeasureName = "log-probability"
    reference: Float[Tensor, "query vocabulary"] | None = None


def quantities(
    measure: Measure, logits: Float[Tensor, "batch query vocabulary"], ids: Int[Tensor, "batch query"], first: int = 0
) -> Float[Tensor, "batch query"]:
    """The quantity at every position; without gradients a few positions at a time, so that memory stays small.

    `first` is the place of the first position in the output.
    """
    rows, wanted = logits.flatten(0, 1), ids.flatten()
    if measure.name == "logit":
        return _wide(rows.gather(1, wanted[:, None])).reshape(ids.shape)
    step = len(rows) if torch.is_grad_enabled() and logits.requires_grad else max(1, _CELLS // rows.shape[1])
    places = first + torch.arange(len(rows), device=rows.device) % logits.shape[1]
    parts = [
        _quantity(measure, rows[start : start + step], wanted[start : start + step], places[start : start + step])
        for start in range(0, len(rows), step)
    ]
    return torch.cat(parts).reshape(ids.shape)


def _quantity(
    measure: Measure, logits: Float[Tensor, "row vocabulary"], ids: Int[Tensor, "row"], places: Int[Tensor, "row"]
) -> Float[Tensor, "row"]:
    logits = _wide(logits)
    normaliser = logits.logsumexp(dim=1)
    if measure.name == "log-probability":
        return logits.gather(1, ids[:, None])[:, 0] - normaliser
    log_p = logits - normaliser[:, None]
    if measure.name == "entropy":
        return -(log_p.exp() * log_p).sum(dim=1)
    assert measure.reference is not None
    return (log_p.exp() * (log_p - measure.reference.to(log_p)[places])).sum(dim=1)


def _wide(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    # In half precision the sum over a vocabulary would be wrong in the second digit.
    return x if x.dtype == torch.float64 else x.float()
