"""Each method's score of a unit as a sum of terms, from its attention on, so that two methods' difference is one too.

    attention at fair value + value + cancelling + sign                       = contribution, α W_ℓ v
    contribution + others                                                     = left out, nothing in its place
    left out + (stand-in | moving up) [+ bend]                                = leave-one-out
    leave-one-out + company                                                   = LIME, Shapley and Banzhaf values
    contribution + bias + attention path                                      = gradient × input

On a model of several layers the contribution is a first order, and "rest" takes the place of what is not known.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from heedful.evaluation.disagreement.evidence import Evidence, at_fair_value
from heedful.explanation import Explanation

Terms = dict[str, Float[np.ndarray, "unit"]]
"""Numbers that sum to a score, or to the difference of two, unit by unit."""

TERMS: Mapping[str, str] = {
    "attention": "the attention it gets, at the mean size of a value",
    "value": "its value is larger or smaller than the text's mean",
    "cancelling": "heads, layers or tokens of it that speak for and against",
    "sign": "it speaks against the target, which attention cannot say",
    "side": "what it carries and what its score comes to are on opposite sides",
    "others": "what the other units say with the attention it leaves them",
    "stand-in": "what stands in its place speaks too",
    "moving up": "the words behind it move up, and padding comes in",
    "bend": "the probability bends where the logits do not",
    "company": "what it does when other units are gone too",
    "bias": "the part of its value that its embedding does not make",
    "attention path": "what more or less attention on it would do",
    "query path": "what it does through the queries",
    "leaving out": "what the target loses when it goes",
    "rest": "what the first order of attention does not show",
}
"""Every term in words."""

REMOVAL = frozenset(
    {
        *("leave-one-out", "lime", "lime-exact", "lime-limit", "occlusion"),
        *("shapley-exact", "shapley-sampled", "hierarchical-shapley", "banzhaf-exact"),
    }
)
"""Methods whose scores are what the target loses when units go, in its own scale."""

_POOLED = frozenset({"attention-mean", "attention-sum", "attention-last", "rollout"})
"""Where there is one layer these are the same but for a factor."""

_AVERAGED = frozenset({"attention-mean", "attention-sum"})
"""Where there are several layers."""

_BEFORE_SIGN = ("attention", "value", "cancelling")


def accounts(evidence: Evidence, explanations: Sequence[Explanation]) -> dict[str, Terms]:
    """The terms of every method that has any; the scores of an attention method are taken at fair value."""
    found = {}
    for explanation in explanations:
        terms = _account(evidence, explanation)
        if terms is not None:
            found[explanation.method] = terms
    return found


def apart(one: Terms, other: Terms, signed: bool) -> Terms:
    """By how much each term puts the other method's score above the first one's; as `agreement` compares them.

    Where a method is unsigned sizes are compared, so each score is turned to be positive: −f is asked for in place of f
    where it is not. That turns every term but the first three, and the sign becomes "side": a difference only where
    the contribution and the score are on opposite sides.
    """
    pair = (one, other) if signed else (_turned(one), _turned(other))
    names = [name for name in TERMS if name in pair[0] or name in pair[1]]
    zero = np.zeros_like(next(iter(one.values())))
    return {name: pair[1].get(name, zero) - pair[0].get(name, zero) for name in names}


def total(terms: Terms) -> Float[np.ndarray, "unit"]:
    return np.sum(list(terms.values()), axis=0)


def _account(evidence: Evidence, explanation: Explanation) -> Terms | None:
    method, scores = explanation.method, explanation.scores
    passed = evidence.passed
    if method in REMOVAL:
        return _of_removal(evidence, explanation)
    if passed is None:
        return None
    if method in (_POOLED if evidence.exact else _AVERAGED):
        return {"attention": at_fair_value(scores, passed.gross)}
    if method != "gradient-x-input" and explanation.settings.get("reduce") != "x-input":
        return None
    if evidence.bias is not None and evidence.path is not None:
        return {**_contribution(evidence), "bias": evidence.bias, "attention path": evidence.path}
    if evidence.query is not None:
        rest = scores - evidence.query - passed.contribution
        return {**_contribution(evidence), "query path": evidence.query, "rest": rest}
    return None


def _of_removal(evidence: Evidence, explanation: Explanation) -> Terms:
    """From the contribution to what is lost, by way of nothing in its place, and on to what is lost in company."""
    absence, scores = str(explanation.settings.get("absence", "replace")), explanation.scores
    terms, beyond = _contribution(evidence), "moving up" if absence == "delete" else "stand-in"
    before = evidence.passed.contribution if evidence.passed is not None else np.zeros_like(scores)
    open_name = "others" if evidence.exact else "leaving out" if evidence.passed is None else "rest"
    known = evidence.straight or evidence.losses
    if absence not in known:
        return {**terms, open_name: scores - before}
    first = known.get("mask", known[absence])
    terms[open_name] = first - before
    if "mask" in known and absence != "mask":
        terms[beyond] = known[absence] - first
    if evidence.losses[absence] is not known[absence]:
        terms["bend"] = evidence.losses[absence] - known[absence]
    if explanation.method != "leave-one-out":
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
