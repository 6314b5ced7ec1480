"""The paper's two theorems as explainers, and the approximations between the second and the exact limit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import ClassVar, Literal, final

import numpy as np
import torch
from einops import einsum
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.document import Document
from heedful.document.units import unit_scores
from heedful.errors import Unsupported
from heedful.explainers import Explainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Model, Offer
from heedful.models.network import Network
from heedful.models.single_layer import SingleLayer
from heedful.models.vocabulary import CLS, UNK
from heedful.perturb.exact_game import games_of
from heedful.theory.exact import lime_limit
from heedful.theory.gradient import gradient, query_gradient
from heedful.theory.lime import lime_approximation, lime_integral, lime_leading_term, lime_sums

NEEDS: frozenset[Offer] = frozenset({"weights"})
Cls = Literal["kept", "replaced"]
"""Whether [CLS] stays in the document of [UNK]s, or is [UNK] too, as Eq. (18) is printed."""


@final
@dataclass(frozen=True)
class GradientTheorem(Explainer):
    """Gradient of the paper's model in closed form: Theorem 4.1.

    `reduce` makes a token's gradient one number, as the gradient-… methods do. `query="moves"` adds at [cls] the
    gradient through its own query; "fixed" is the theorem as printed. The scores of words are the same.
    """

    name: ClassVar[str] = "gradient-theorem"
    group: ClassVar[Group] = "gradients"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True
    summary_group: ClassVar[tuple[str, int] | None] = ("gradient", 2)

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
            scores, others = unit_scores(document, self.unit, _reduced(self.reduce, rows, e).cpu().numpy())
            explanation = self.explanation(question, index, scores, np.zeros_like(scores), others)
            explanations.append(replace(explanation, signed=self.reduce in ("mean", "x-input")))
        return explanations


@final
@dataclass(frozen=True)
class LimeTheorem(Explainer):
    """Closed-form approximation of LIME: Theorem 5.1, Eq. (19).

    `form="printed"` is the paper's Eq. (19); "corrected" is the leading term with its constant and its centre corrected
    (`theory/lime.py`). The error of neither is bounded for one text, so there is no interval;
    `facts["distance_to_exact"]` is the 2-norm to `lime-limit`.

    Differs from the paper: [CLS] is kept in the document of [UNK]s, since LIME never removes it; `cls="replaced"` is
    α_h as printed, of [UNK] at every position.
    """

    name: ClassVar[str] = "lime-theorem"
    group: ClassVar[Group] = "surrogates"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    form: Literal["printed", "corrected"] = "printed"
    cls: Cls = "kept"

    def explain_batch(self, question: Question) -> list[Explanation]:
        formula = lime_approximation if self.form == "printed" else lime_leading_term
        return _approximations(self, question, lambda _: formula)


@final
@dataclass(frozen=True)
class LimeSums(Explainer):
    """Closed-form approximation of LIME by finite sums: Prop. B.1, Eq. (31).

    One step closer to LIME's limit than Lemma D.2, which replaces the sum over sizes by an integral. As printed, with
    the theorem's constant and without its centre (docs/theorem-5-1.md), and with d = T, the number of words, for every
    unit, as the theorem assumes. `cls` and `facts["distance_to_exact"]` as in `lime-theorem`.
    """

    name: ClassVar[str] = "lime-sums"
    group: ClassVar[Group] = "surrogates"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    cls: Cls = "kept"

    def explain_batch(self, question: Question) -> list[Explanation]:
        return _approximations(self, question, lambda document: partial(lime_sums, d=document.n_units("token")))


@final
@dataclass(frozen=True)
class LimeIntegral(Explainer):
    """Closed-form approximation of LIME by an integral: Lemma D.2.

    Between Theorem 5.1 and `lime-sums`. As printed, with the theorem's constant and without its centre
    (docs/theorem-5-1.md). `cls` and `facts["distance_to_exact"]` as in `lime-theorem`.
    """

    name: ClassVar[str] = "lime-integral"
    group: ClassVar[Group] = "surrogates"
    needs: ClassVar[frozenset[Offer]] = NEEDS
    signed: ClassVar[bool] = True

    cls: Cls = "kept"

    def explain_batch(self, question: Question) -> list[Explanation]:
        return _approximations(self, question, lambda _: lime_integral)


def _approximations(
    explainer: "LimeTheorem | LimeSums | LimeIntegral",
    question: Question,
    formula_of: Callable[[Document], Callable[..., Float[Tensor, "token"]]],
) -> list[Explanation]:
    """The explanations of one approximation of LIME's limit, with their distance to the exact limit."""
    model = _single_layer(question.model)
    net = model.network
    long_enough = [document.n_units(explainer.unit) > 1 for document in question.documents]
    exact = iter(_limits(explainer, question, np.array(long_enough)))
    explanations = []
    for index, document in enumerate(question.documents):
        e, q, W_l = _inputs(question, index)
        # Of every word [UNK], while [CLS] and padding stay.
        e_h = model.absent([document])[0].detach().double()
        if explainer.cls == "replaced":
            e_h[CLS] = (net.W_e[UNK] + net.W_p[CLS]).detach().double()
        s, w, s_h, w_h = (*_scores_and_values(net, e, q, W_l), *_scores_and_values(net, e_h, q, W_l))
        scores, _ = unit_scores(document, explainer.unit, formula_of(document)(s, w, s_h, w_h).cpu().numpy())
        facts = {}
        if long_enough[index]:
            facts["distance_to_exact"] = float(np.linalg.norm(scores - next(exact)[: len(scores)]))
        explanations.append(explainer.explanation(question, index, scores, None, facts))
    return explanations


def _limits(
    explainer: Explainer, question: Question, chosen: Bool[np.ndarray, "batch"]
) -> Float[np.ndarray, "some unit"]:
    """LIME's exact limit for the documents that have more than one unit."""
    if not chosen.any():
        return np.zeros((0, 0))
    chosen_question = question.only(np.flatnonzero(chosen).tolist())
    games = games_of(chosen_question, explainer.unit, "replace", 2, explainer.name)
    return lime_limit(games).values.cpu().numpy()


def _single_layer(model: Model) -> SingleLayer:
    if not isinstance(model, SingleLayer):
        raise Unsupported(f"The theorems hold for the single-layer model alone; a {type(model).__name__} was given.")
    return model


def _inputs(
    question: Question, index: int
) -> tuple[Float[Tensor, "token d_e"], Float[Tensor, "head d_att"], Float[Tensor, "head d_out"]]:
    """Embeddings, the [CLS] query, and the row of W_ℓ that gives the target."""
    model = _single_layer(question.model)
    net = model.network
    with torch.no_grad():
        e = model.embed([question.documents[index]])
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
