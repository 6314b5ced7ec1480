"""The targets of a batch as a differentiable tensor, and their gradient at the embeddings."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import log_softmax, logsigmoid

from heedful.errors import BadInput, Unsupported
from heedful.target import Target


def target_values(targets: Sequence[Target], logits: Float[Tensor, "batch class"]) -> Float[Tensor, "batch"]:
    """The target of every document as a differentiable tensor; `Target.of` computes the same from arrays."""
    values = []
    for target, row in zip(targets, logits, strict=True):
        if target.scale == "log-probability":
            row = log_softmax(row, dim=-1) if len(row) > 1 else logsigmoid(row)
        values.append(row[target.index] if target.against is None else row[target.index] - row[target.against])
    return torch.stack(values)


def gradient_at(f: Float[Tensor, "batch"], e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch token d_e"]:
    """∂f/∂e of every document; raises an error if no gradient flows through the model."""
    if not f.requires_grad:
        raise Unsupported("No gradient flows through this model, so gradient methods cannot explain it.")
    (gradient,) = torch.autograd.grad(f.sum(), e)
    if not gradient.isfinite().all():
        raise BadInput("The gradient for this text is not a finite number; in half precision, load the model in full.")
    return gradient
