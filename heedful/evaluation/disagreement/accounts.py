"""Each method's score of a unit as a sum of terms, so that the difference of two methods is a sum of terms too.

    attention at fair value + value + cancelling + sign                       = contribution, α W_ℓ v
    contribution + others                                                     = left out, without replacement
    left out + (replacement | moving up) [+ bend]                             = leave-one-out
    leave-one-out + company                                                   = LIME, Shapley and Banzhaf values
    contribution + bias + attention path                                      = gradient × input

On a model of several layers the contribution is a first-order approximation, and "rest" is the remainder.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float

from heedful.evaluation.disagreement.evidence import Evidence, at_fair_value
from heedful.explainers import Explainer
from heedful.explanation import Explanation
from heedful.family import members

Terms = dict[str, Float[np.ndarray, "unit"]]
"""Numbers per unit that sum to a score, or to the difference of two scores."""

TERMS: Mapping[str, str] = {
    "attention": "its attention, times the mean size of a value",
    "value": "its value is larger or smaller than the mean of the text",
    "cancelling": "its heads, layers or tokens have opposite signs",
    "sign": "it is evidence against the target, which attention cannot show",
    "side": "its contribution and its score have opposite signs",
    "others": "the other units share the attention that it leaves",
    "replacement": "the replacement has an effect too",
    "moving up": "the words after it move up, and padding is added",
    "bend": "the probability is not linear in the logits",
    "company": "its effect when other units are removed too",
    "bias": "the part of its value that does not depend on its embedding",
    "attention path": "the effect of its embedding on its attention weight",
    "query path": "the effect of its embedding on the queries",
    "leaving out": "the loss of the target when it is removed",
    "rest": "what the first-order approximation does not show",
}
"""Every term, explained."""

_BEFORE_SIGN = ("attention", "value", "cancelling")


def accounts(evidence: Evidence, explanations: Sequence[Explanation]) -> dict[str, Terms]:
    """The terms of every method that has some; attention scores are scaled to the mean size of a value."""
    terms = {explanation.method: _account(evidence, explanation) for explanation in explanations}
    return {method: own for method, own in terms.items() if own is not None}


def difference_terms(one: Terms, other: Terms, signed: bool) -> Terms:
    """The difference of two methods' scores, term by term, as `agreement` compares the scores.

    If a method is unsigned, sizes are compared: where a score is negative the terms of −f are taken. That changes the
    sign of every term but the first three, and the term "sign" becomes "side": it is 0 unless contribution and score
    have opposite signs.
    """
    pair = (one, other) if signed else (_turned(one), _turned(other))
    names = [name for name in TERMS if name in pair[0] or name in pair[1]]
    zero = np.zeros_like(next(iter(one.values())))
    return {name: pair[1].get(name, zero) - pair[0].get(name, zero) for name in names}


def removal_kind(method: str) -> Literal["single", "joint"] | None:
    """Whether a method scores units by removing them one at a time or together; None for all other methods."""
    kind = members("heedful.explainers", Explainer).get(method)
    return None if kind is None else kind.removal


def is_times_input(method: str) -> bool:
    """Whether a method's scores are gradient × input, whatever its settings."""
    kind = members("heedful.explainers", Explainer).get(method)
    return kind is not None and kind.times_input


def _is_mean_attention(method: str, one_layer: bool) -> bool:
    """Whether a method's scores are proportional to the mean attention: of one layer, or of any number of layers."""
    kind = members("heedful.explainers", Explainer).get(method)
    return kind is not None and kind.mean_attention in (("any depth", "one layer") if one_layer else ("any depth",))


def total(terms: Terms) -> Float[np.ndarray, "unit"]:
    """The sum of the terms."""
    return np.sum(list(terms.values()), axis=0)


def _account(evidence: Evidence, explanation: Explanation) -> Terms | None:
    method, scores, passed = explanation.method, explanation.scores, evidence.passed
    if removal_kind(method) is not None:
        return _of_removal(evidence, explanation)
    if passed is None:
        return None
    if _is_mean_attention(method, one_layer=evidence.exact):
        return {"attention": at_fair_value(scores, passed.gross)}
    if not is_times_input(method) and explanation.settings.get("reduce") != "x-input":
        return None
    if evidence.bias is not None and evidence.path is not None:
        return {**_contribution(evidence), "bias": evidence.bias, "attention path": evidence.path}
    if evidence.query is not None:
        rest = scores - evidence.query - passed.contribution
        return {**_contribution(evidence), "query path": evidence.query, "rest": rest}
    return None


def _of_removal(evidence: Evidence, explanation: Explanation) -> Terms:
    """From the contribution to the loss without replacement, with replacement, and together with other units."""
    absence, scores = str(explanation.settings.get("absence", "replace")), explanation.scores
    terms, beyond = _contribution(evidence), "moving up" if absence == "delete" else "replacement"
    before = evidence.passed.contribution if evidence.passed is not None else np.zeros_like(scores)
    open_name = "others" if evidence.exact else "leaving out" if evidence.passed is None else "rest"
    losses = evidence.straight or evidence.losses
    if absence not in losses:
        return {**terms, open_name: scores - before}
    first = losses.get("mask", losses[absence])
    terms[open_name] = first - before
    if "mask" in losses and absence != "mask":
        terms[beyond] = losses[absence] - first
    if evidence.losses[absence] is not losses[absence]:
        terms["bend"] = evidence.losses[absence] - losses[absence]
    if removal_kind(explanation.method) == "joint":
        terms["company"] = scores - evidence.losses[absence]
    return terms


def _contribution(evidence: Evidence) -> Terms:
    passed = evidence.passed
    if passed is None:
        return {}
    size = np.abs(passed.contribution)
    return {
        "attention": passed.fair,
        "value": passed.gross - passed.fair,
        "cancelling": size - passed.gross,
        "sign": passed.contribution - size,
    }


def _turned(terms: Terms) -> Terms:
    """The terms of the score's size: of −f where the score is negative."""
    side = np.where(total(terms) < 0, -1.0, 1.0)
    if "sign" not in terms:
        return {name: side * term for name, term in terms.items()}
    size = np.sum([terms[name] for name in _BEFORE_SIGN], axis=0)
    turned = {name: term if name in _BEFORE_SIGN else side * term for name, term in terms.items()}
    del turned["sign"]
    return {**turned, "side": side * (size + terms["sign"]) - size}
