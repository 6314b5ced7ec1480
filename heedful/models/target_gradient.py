"""The targets of a batch as a differentiable tensor, and their gradient at the embeddings."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid

from heedful.errors import BadInput, Unsupported
from heedful.target import Returns, Target, no_probabilities


def target_values(targets: Sequence[Target], logits: Float[Tensor, "batch class"]) -> Float[Tensor, "batch"]:
    """The target of every document as a differentiable tensor; `Target.of` computes the same from arrays."""
    values = []
    for target, row in zip(targets, logits, strict=True):
        if not target.is_linear:
            row = _log_probabilities(row, target.returns or "logits")
            row = row.exp() if target.scale == "probability" else row
        values.append(row[target.index] if target.against is None else row[target.index] - row[target.against])
    return torch.stack(values)


def _log_probabilities(row: Float[Tensor, "class"], returns: Returns) -> Float[Tensor, "class"]:
    """As `heedful.target.log_probabilities`, differentiable."""
    if returns == "scores":
        raise no_probabilities()
    if returns == "probabilities":
        return row.log()
    if returns == "log-probabilities":
        return row
    return logsigmoid(row) if returns == "independent-logits" or len(row) == 1 else log_softmax(row, dim=-1)


def gradient_at(f: Float[Tensor, "batch"], e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch token d_e"]:
    """∂f/∂e of every document; raises an error if no gradient flows through the model."""
    if not f.requires_grad:
        raise Unsupported("No gradient flows through this model, so gradient methods cannot explain it.")
    (gradient,) = torch.autograd.grad(f.sum(), e)
    if not gradient.isfinite().all():
        raise BadInput("The gradient for this text is not a finite number; in half precision, load the model in full.")
    return gradient
