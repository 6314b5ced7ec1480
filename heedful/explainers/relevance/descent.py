"""One forward and one backward pass through attention layers, each visited with the gradient of its output."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import count

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document import Document
from heedful.errors import BadInput, Unsupported
from heedful.explainers import Question
from heedful.models.attention_hook import Attended
from heedful.models.budget import PASS_MEMORY
from heedful.models.checkpointing import recomputing
from heedful.models.target_gradient import target_values

Logits = Float[Tensor, "batch class"]
Visit = Callable[[int, Attended, Float[Tensor, "batch head query d_out"]], None]


def is_too_large(question: Question) -> bool:
    """Whether the activations of its texts do not fit in memory, so that layers must be computed twice."""
    model, documents = question.recordable, question.documents
    longest = max(len(document.ids) for document in documents)
    return model.bytes_a_document(longest) * len(documents) > PASS_MEMORY


def descend(
    question: Question,
    documents: Sequence[Document],
    start: Callable[[Logits], Logits],
    recompute: bool,
    output: Callable[[Attended], Tensor] = Attended.output,
    visit: Visit = lambda *_: None,
) -> Float[Tensor, "batch token d_e"]:
    """e · ∂ at every embedding, where ∂ is what arrives from `start` of the logits; every layer is visited.

    Attention is computed by `output`, whose backward pass may carry relevance instead of derivatives.
    """

    numbers = count()

    def listen(call: Attended) -> Tensor:
        out = output(call)
        if out.requires_grad:
            number, seen = next(numbers), call.detached()
            out.register_hook(lambda gradient: visit(number, seen, gradient))
        return out

    model = question.recordable
    rerun = recomputing(model.network) if recompute else nullcontext()
    with torch.enable_grad(), question.still(), model.listening(listen), rerun:
        e = model.embed(documents).detach().requires_grad_()
        logits = model.forward(e, documents)
        torch.autograd.backward(logits, start(logits.detach()))
    return torch.zeros_like(e) if e.grad is None else e.detach() * e.grad


def finite_rows(relevances: Float[Tensor, "batch token"]) -> Float[np.ndarray, "batch token"]:
    """Relevances in double precision; refuses those that are not finite."""
    if not relevances.isfinite().all():
        raise BadInput(
            "The relevance of this text is not a finite number; if the model is in half precision, load it in full."
        )
    return relevances.double().cpu().numpy()


def check_logits(question: Question, method: str) -> None:
    """Refuses log-probabilities, to which no relevance is propagated."""
    if question.model.returns == "log-probabilities":
        raise Unsupported('propagates the relevance of a logit; of generated text, ask for measure="logit".', method)


def target_slope(question: Question, logits: Logits) -> Logits:
    """∂target/∂logits; the question learns the logits."""
    question.learn(logits)
    at = logits.requires_grad_()
    return torch.autograd.grad(target_values(question.targets, at).sum(), at)[0]
