"""Relevance of attention weighted by the target's gradient, through the layers."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document import Document
from heedful.errors import BadInput, Unsupported
from heedful.explainers import Explainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_hook import Attended, still
from heedful.models.budget import PASS_MEMORY
from heedful.models.checkpointing import recomputing
from heedful.models.recording import Recordable
from heedful.models.relevance import attended, map_relevance, over, propagating
from heedful.models.target_gradient import target_values

Logits = Float[Tensor, "batch class"]
Steps = list[tuple[Attended, Tensor]]
"""Every attention call, from the last layer down, with what came back to its output."""


@final
@dataclass(frozen=True)
class RelevanceAttention(Explainer):
    """Relevance of attention times its gradient, positive part, through the layers.

        Ā = I + mean_h (∇A ⊙ R)⁺ of every layer, Eq. (13);  C = Ā_B ⋯ Ā_1, Eq. (14);  the read-out row of C

    R is the relevance of the attention map A: one unit of relevance at the target's logit is handed down by layer-wise
    relevance propagation, through linear maps by positive contributions alone, Eqs. (4) and (5), through products and
    skip connections by Eqs. (6)–(10), and unchanged through norms, non-linearities and the softmax. One forward and
    backward pass gives ∇A = ∇o vᵀ, another, with the rules of `models/relevance.py` in place of derivatives, R.

    Left out of `heedful.compare` unless it is named: relevance propagation, as it is used here, is claimed by a patent
    family (Bach, Binder, Montavon, Müller & Samek, *Relevance score assignment for artificial neural networks*,
    US 2018/0018553 A1, and its European counterpart). Whether that binds you is not for this library to say.

    Reference: Chefer, Gur & Wolf, *Transformer Interpretability Beyond Attention Visualization*, 2021,
    arXiv:2012.09838. What the paper leaves open is done as in the authors' code: the last layer's Ā stands on the left
    of the product, the relevance of A goes on to q and k, a half each, and a bias takes none.
    Differs from the paper: the sums that normalise a skip connection are taken of each text, not of the batch. All
    layers count, and nothing that [CLS] pays itself is cleared (the authors' script for BERT does both otherwise);
    special tokens are shown apart.
    Beyond the paper: where the read-out is not [CLS], it is the mean or the last position. A gated layer's product is
    halved like any product; sums that are no skip connections, and whatever else has no rule, follow the chain rule
    of Eq. (2). With `against`, ∇A is the difference's and R that of the class less that of the other, each handed down
    alone (together they would sum to nothing, which Eqs. (6)–(10) cannot normalise); a log-probability changes ∇A only.
    """

    name: ClassVar[str] = "relevance-attention"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers", "gradients"})
    signed: ClassVar[bool] = False
    opt_in: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents = question.recordable, question.documents
        if model.n_sources(documents):
            raise Unsupported(
                f"{self.name} is not defined for cross-attention, so it cannot explain an encoder-decoder; "
                "gradient-attention can."
            )
        longest = max(len(document.ids) for document in documents)
        again = model.bytes_a_document(longest) * len(documents) > PASS_MEMORY
        steps = _descent(model, documents, Attended.output, lambda logits: _slope(question, logits), again)
        g = _relevances(model, documents, [target.index for target in question.targets], again)
        rivals = [target.against for target in question.targets if target.against is not None]
        if rivals:
            other = _relevances(model, documents, rivals, again)
            g = [one - two for one, two in zip(g, other, strict=True)]
        r = model.readout(documents)
        for (call, slope), of_layer in zip(steps, g, strict=True):
            r = r + _weighed(call, slope, of_layer, r)
        if not r.isfinite().all():
            raise BadInput("Relevance is not a finite number for this text; in half precision, load the model in full.")
        rows = model.placed(documents, r, None).double().cpu().numpy()
        n_passes = 3 if rivals else 2
        return self.from_tokens(question, rows, {"forwards": n_passes * (1 + again), "backwards": n_passes})


def _descent(
    model: Recordable,
    documents: Sequence[Document],
    output: Callable[[Attended], Tensor],
    start: Callable[[Logits], Logits],
    again: bool,
) -> Steps:
    """One forward pass whose attention is `output`, and one backward pass that begins with `start` of the logits."""
    steps: Steps = []

    def listen(call: Attended) -> Tensor:
        out = output(call)
        if out.requires_grad:
            seen = call.detached()
            out.register_hook(lambda gradient: steps.append((seen, gradient)))
        return out

    rerun = recomputing(model.network) if again else nullcontext()
    with torch.enable_grad(), still(model.network), model.listening(listen), rerun:
        e = model.embed(documents).detach().requires_grad_()
        logits = model.forward(e, documents)
        torch.autograd.backward(logits, start(logits.detach()))
    return steps


def _slope(question: Question, logits: Logits) -> Logits:
    """∂target/∂logits; the question learns the logits."""
    question.learn(logits)
    at = logits.requires_grad_()
    return torch.autograd.grad(target_values(question.targets, at).sum(), at)[0]


def _relevances(model: Recordable, documents: Sequence[Document], classes: Sequence[int], again: bool) -> list[Tensor]:
    """The g = R / o of every attention output, from the last layer down, for one unit of relevance at each class."""
    # Which axis of a hidden state is the batch is not known of every torch module; a text alone is all of its batch.
    parts = [slice(None)] if model.ragged else [slice(n, n + 1) for n in range(len(documents))]
    result = []
    for part in parts:
        units = torch.tensor(classes[part])

        def start(logits: Logits, units: Tensor = units) -> Logits:
            unit = torch.nn.functional.one_hot(units, logits.shape[1])
            return over(unit.to(logits), logits)

        with propagating(model.network, len(units)):
            result.append([g for _, g in _descent(model, documents[part], attended, start, again)])
    return [torch.cat(layer) for layer in zip(*result, strict=True)]


def _weighed(
    call: Attended,
    slope: Float[Tensor, "batch head query d_out"],
    g: Float[Tensor, "batch head query d_out"],
    r: Float[Tensor, "batch key"],
) -> Float[Tensor, "batch key"]:
    """r mean_h (∇A ⊙ R)⁺, a few queries at a time."""
    pulled = r.new_zeros(r.shape[0], call.k.shape[2])
    for queries in call.portions(r):
        # Padding may see nothing at all: its row is no number, and nothing is read from it.
        rows = torch.where(r[:, None, queries, None] != 0, call.rows(queries), 0)
        slopes = slope[:, :, queries].to(rows) @ call.v.to(rows).transpose(-1, -2)
        positive = (slopes * map_relevance(rows, g[:, :, queries], call.v)).clamp(min=0).mean(dim=1)
        pulled += torch.einsum("bs,bst->bt", r[:, queries], positive.to(r))
    return pulled
