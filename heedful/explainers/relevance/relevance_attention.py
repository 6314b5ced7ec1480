"""Relevance of attention weighted by the target's gradient, through the layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import Unsupported
from heedful.explainers import Explainer, Group, Question
from heedful.explainers.relevance.descent import Logits, check_logits, descend, finite_rows, is_too_large, target_slope
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.attention_hook import Attended
from heedful.models.relevance.propagation import attended, map_relevance, propagating
from heedful.models.relevance.rules import over


@final
@dataclass(frozen=True)
class RelevanceAttention(Explainer):
    """Relevance of attention times its gradient, positive part, through the layers.

        Ā = I + mean_h (∇A ⊙ R)⁺ of every layer, Eq. (13);  C = Ā_B ⋯ Ā_1, Eq. (14);  the read-out row of C

    R is the relevance of the attention map A. One unit of relevance at the target's logit is propagated by layer-wise
    relevance propagation: through linear maps by positive contributions alone, Eqs. (4) and (5), through products and
    skip connections by Eqs. (6)–(10), and unchanged through norms, non-linearities and the softmax. One forward and
    backward pass gives ∇A = ∇o vᵀ; another, with the rules of `models/relevance/` instead of derivatives, gives R.

    `heedful.compare` uses it only if it is named: relevance propagation, as used here, is claimed by a patent family
    (Bach, Binder, Montavon, Müller & Samek, *Relevance score assignment for artificial neural networks*,
    US 2018/0018553 A1, and its European counterpart). Check whether that applies to you.

    Reference: Chefer, Gur & Wolf, *Transformer Interpretability Beyond Attention Visualization*, 2021,
    arXiv:2012.09838. Where the paper leaves a choice, the authors' code decides: the last layer's Ā is the leftmost
    factor, q and k each get half of the relevance of A, and a bias gets none.
    Differs from the paper: the sums that normalise a skip connection are taken over each text, not over the batch. All
    layers count, and the attention of [CLS] to itself is kept (the authors' script for BERT does neither); special
    tokens are shown separately.
    Beyond the paper: where the read-out is not [CLS], it is the mean or the last position. The product of a gated layer
    is halved like any product; sums that are not skip connections, and operations without a rule, follow the chain rule
    of Eq. (2). With `against`, ∇A is that of the difference, and R is the relevance of the class minus that of the
    other, each propagated alone (together they sum to zero, which Eqs. (6)–(10) cannot normalise); a log-probability
    changes ∇A only.
    """

    name: ClassVar[str] = "relevance-attention"
    group: ClassVar[Group] = "attention"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers", "gradients"})
    signed: ClassVar[bool] = False
    opt_in: ClassVar[bool] = True

    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents = question.recordable, question.documents
        if model.n_sources(documents):
            raise Unsupported(
                "is not defined for cross-attention, so it cannot explain an encoder-decoder; gradient-attention can.",
                self.name,
            )
        check_logits(question, self.name)
        recompute = is_too_large(question)
        steps: list[tuple[Attended, Tensor]] = []
        start = partial(target_slope, question)
        descend(question, documents, start, recompute, visit=lambda _, *step: steps.append(step))
        g = _relevances(question, [target.index for target in question.targets], recompute)
        rivals = [target.against for target in question.targets if target.against is not None]
        if rivals:
            of_rivals = _relevances(question, rivals, recompute)
            g = [own - rival for own, rival in zip(g, of_rivals, strict=True)]
        r = model.readout(documents)
        for (call, gradient), of_layer in zip(steps, g, strict=True):
            r = r + _weighed(call, gradient, of_layer, r)
        rows = finite_rows(model.placed(documents, r, None))
        n_passes = 3 if rivals else 2
        return self.from_tokens(question, rows, {"forwards": n_passes * (1 + recompute), "backwards": n_passes})


def _relevances(question: Question, classes: Sequence[int], recompute: bool) -> list[Tensor]:
    """The g = R / o of every attention output, from the last layer down, for one unit of relevance at each class."""
    model, documents = question.recordable, question.documents
    # Not every torch module says which axis of a hidden state is the batch, so its texts are run one at a time.
    parts = [slice(None)] if model.ragged else [slice(n, n + 1) for n in range(len(documents))]
    relevances = []
    for part in parts:
        units, layers = torch.tensor(classes[part]), []

        def start(logits: Logits, units: Tensor = units) -> Logits:
            unit = torch.nn.functional.one_hot(units, logits.shape[1])
            return over(unit.to(logits), logits)

        with propagating(model.network, len(units)):
            descend(question, documents[part], start, recompute, attended, lambda _, __, g, to=layers: to.append(g))
        relevances.append(layers)
    return [torch.cat(layer) for layer in zip(*relevances, strict=True)]


def _weighed(
    call: Attended,
    gradient: Float[Tensor, "batch head query d_out"],
    g: Float[Tensor, "batch head query d_out"],
    r: Float[Tensor, "batch key"],
) -> Float[Tensor, "batch key"]:
    """r mean_h (∇A ⊙ R)⁺, a few queries at a time."""
    pulled = r.new_zeros(r.shape[0], call.k.shape[2])
    for queries in call.portions(r):
        # A row of padding may attend to nothing and be NaN; its weight is zero.
        rows = torch.where(r[:, None, queries, None] != 0, call.rows(queries), 0)
        slopes = gradient[:, :, queries].to(rows) @ call.v.to(rows).transpose(-1, -2)
        positive = (slopes * map_relevance(rows, g[:, :, queries], call.v)).clamp(min=0).mean(dim=1)
        pulled += torch.einsum("bs,bst->bt", r[:, queries], positive.to(r))
    return pulled
