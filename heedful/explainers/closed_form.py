"""The paper's two theorems as explainers; the only bridge from models to theory/."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar, Literal, final

import numpy as np
import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor

from heedful.aggregate import unit_scores
from heedful.errors import Unsupported
from heedful.explainers import Explainer, Question
from heedful.explanation import Explanation
from heedful.models import Model, Offer
from heedful.models.single_layer import Network, SingleLayer
from heedful.theory.gradient import gradient, query_gradient
from heedful.theory.lime import lime_approximation, lime_leading_term
from heedful.tokens import CLS, UNK

NEEDS: frozenset[Offer] = frozenset({"weights"})


@final
@dataclass(frozen=True)
class GradientTheorem(Explainer):
    """The gradient in closed form, without a backward pass: Theorem 4.1.

    `reduce` makes a token's gradient one number, as the gradient-… methods do. `query="moves"` adds at [cls] the part
    that runs through its own query; "fixed" is the theorem as printed. Words are the same either way.
    """

    name: ClassVar[str] = "gradient-theorem"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    reduce: Literal["mean", "l1", "l2", "x-input"] = "mean"
    query: Literal["moves", "fixed"] = "moves"

    def explain_batch(self, question: Question) -> list[Explanation]:
        net = _single_layer(question.model).network
        W_q, W_k, W_v, b_v = (x.detach().double() for x in (net.W_q, net.W_k, net.W_v, net.b_v))
        explanations = []
        for index, document in enumerate(question.documents):
            e, q, W_l = _inputs(question, index)
            rows = gradient(e, q, W_k, W_v, b_v, W_l)
            if self.query == "moves":
                rows[CLS] += query_gradient(e, q, W_q, W_k, W_v, b_v, W_l)
            scores, apart = unit_scores(document, self.unit, _reduced(self.reduce, rows, e).cpu().numpy())
            found = self.explanation(question, index, scores, np.zeros_like(scores), apart)
            explanations.append(replace(found, signed=self.reduce in ("mean", "x-input")))
        return explanations


@final
@dataclass(frozen=True)
class LimeTheorem(Explainer):
    """LIME without sampling, as Theorem 5.1, Eq. (19), approximates it.

    `form="printed"` is the paper's Eq. (19); "corrected" is the leading term with its constant and its centre mended
    (`theory/lime.py`). Neither error is bounded for one text, so no interval is given.

    Differs from the paper: [CLS] is itself in the document of [UNK]s too, since LIME never removes it.
    """

    name: ClassVar[str] = "lime-theorem"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    form: Literal["printed", "corrected"] = "printed"

    def explain_batch(self, question: Question) -> list[Explanation]:
        net = _single_layer(question.model).network
        explanations = []
        for index, document in enumerate(question.documents):
            e, q, W_l = _inputs(question, index)
            e_h = (net.W_e[UNK] + net.W_p).detach().double()
            e_h[CLS] = e[CLS]
            s, w, s_h, w_h = (*_scores_and_values(net, e, q, W_l), *_scores_and_values(net, e_h, q, W_l))
            formula = lime_approximation if self.form == "printed" else lime_leading_term
            rows = formula(s, w, s_h, w_h).cpu().numpy()
            scores, _ = unit_scores(document, self.unit, rows)
            explanations.append(self.explanation(question, index, scores, None, {}))
        return explanations


def _single_layer(model: Model) -> SingleLayer:
    if not isinstance(model, SingleLayer):
        raise Unsupported(f"The theorems are about the single-layer model; this is a {type(model).__name__}.")
    return model


def _inputs(
    question: Question, index: int
) -> tuple[Float[Tensor, "token d_e"], Float[Tensor, "head d_att"], Float[Tensor, "head d_out"]]:
    """Embeddings, the [CLS] query, and the row of W_ℓ that gives the target."""
    net = _single_layer(question.model).network
    with torch.no_grad():
        e = question.model.embed([question.documents[index]])
        q = net.query(e)[0].double()
        c = torch.from_numpy(question.weights[index]).to(q)
        return e[0].double(), q, einsum(c, net.W_l.double(), "classes, head classes d_out -> head d_out")


def _scores_and_values(
    net: Network,
    e: Float[Tensor, "token d_e"],
    q: Float[Tensor, "head d_att"],
    W_l: Float[Tensor, "head d_out"],
) -> tuple[Float[Tensor, "head token"], Float[Tensor, "head token"]]:
    W_k, b_k, W_v, b_v = (x.detach().double() for x in (net.W_k, net.b_k, net.W_v, net.b_v))
    k = einsum(W_k, e, "head d_att d_e, token d_e -> head token d_att") + b_k[:, None]
    v = einsum(W_v, e, "head d_out d_e, token d_e -> head token d_out") + b_v[:, None]
    s = einsum(q, k, "head d_att, head token d_att -> head token") / sqrt(q.shape[-1])
    return s, einsum(W_l, v, "head d_out, head token d_out -> head token")


def _reduced(reduce: str, rows: Float[Tensor, "token d_e"], e: Float[Tensor, "token d_e"]) -> Float[Tensor, "token"]:
    if reduce == "mean":
        return rows.mean(dim=-1)
    if reduce == "x-input":
        return (rows * e).sum(dim=-1)
    return rows.norm(p=1 if reduce == "l1" else 2, dim=-1)
