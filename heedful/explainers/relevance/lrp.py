"""Layer-wise relevance propagation from the target down to the tokens."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.explainers import Explainer, Group, Question
from heedful.explainers.relevance.descent import Logits, check_logits, descend, finite_rows, is_too_large
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.models.relevance.propagation import attended, propagating
from heedful.models.relevance.rules import Propagation


@final
@dataclass(frozen=True)
class Lrp(Explainer):
    """Layer-wise relevance propagation: the relevance of the target at each embedding.

    The target f(x) is the relevance at the logits. Layer by layer it is distributed over what entered, down to the
    embeddings, whose coordinates are summed: R_t = Σ_i R_{t,i}. Scores are in units of the target. Everywhere a
    non-linearity passes relevance to the same coordinate, and a product of two hidden states gives half to each factor.

        conservative   linear maps, biases and skip connections share relevance by contribution (LRP-ε with ε → 0); the
                       attention weights and the standard deviations of layer norms are held fixed. Conserved: Σ_t R_t =
                       f(x) − the relevance of biases and of vectors that are added, such as positions.
        attnlrp        as above, but half of the relevance of an attention output goes through the attention weights, by
                       the derivative of the softmax and then half to queries and half to keys. The softmax does not
                       conserve, so its loss is subtracted as well.
        z-plus         only positive contributions count, and the parts of skip connections and products are normalised.
                       Biases, positions and token types get nothing; their relevance stays with the token. Σ_t R_t =
                       f(x), less what reaches a linear map to which nothing contributes, or a coordinate that is 0.

    `facts["constants"]` is f(x) − Σ_t R_t, special tokens included in the sum.

    `heedful.compare` uses it only if it is named: relevance propagation is claimed by a patent family (Bach, Binder,
    Montavon, Müller & Samek, US 2018/0018553 A1, and its European counterpart). Check whether that applies to you.

    Reference: Bach et al., *On Pixel-Wise Explanations for Non-Linear Classifier Decisions by Layer-Wise Relevance
    Propagation*, PLoS ONE 2015; the rules are those of Ali et al., 2022, arXiv:2202.07304, Achtibat et al., 2024,
    arXiv:2402.05602, and Chefer, Gur & Wolf, 2021, arXiv:2012.09838.
    Differs from the papers: ε is 0, so nothing is lost to it; there is no γ-rule for images. An RMS norm passes
    relevance to the same coordinate, which is the same as holding its denominator fixed; norms of other kinds do too.
    Operations without a rule follow the chain rule.
    """

    name: ClassVar[str] = "lrp"
    group: ClassVar[Group] = "gradients"
    needs: ClassVar[frozenset[Offer]] = frozenset({"layers", "gradients"})
    signed: ClassVar[bool] = True
    opt_in: ClassVar[bool] = True

    rule: Propagation = "conservative"

    def explain_batch(self, question: Question) -> list[Explanation]:
        model, documents = question.recordable, question.documents
        check_logits(question, self.name)
        recompute = not model.n_sources(documents) and is_too_large(question)
        # The sums of z-plus are taken over a text, and not every torch module says which axis is the batch.
        alone = self.rule == "z-plus" and not model.ragged and len(documents) > 1
        parts = [slice(n, n + 1) for n in range(len(documents))] if alone else [slice(None)]
        rows = finite_rows(torch.cat([self._relevance(question, part, recompute) for part in parts]))
        explanations = self.from_tokens(question, rows, {"forwards": 1 + alone + recompute, "backwards": 1})
        return [
            replace(one, facts={**one.facts, "constants": one.output - float(row.sum())})
            for one, row in zip(explanations, rows, strict=True)
        ]

    def _relevance(self, question: Question, part: slice, recompute: bool) -> Float[Tensor, "batch token"]:
        documents = question.documents[part]

        def start(logits: Logits) -> Logits:
            if len(documents) == len(question.documents):
                question.learn(logits)
            return torch.from_numpy(question.weights[part]).to(logits)

        with propagating(question.recordable.network, len(documents), self.rule):
            return descend(question, documents, start, recompute, partial(attended, propagation=self.rule)).sum(dim=-1)
