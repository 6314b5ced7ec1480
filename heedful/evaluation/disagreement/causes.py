"""The causes of disagreement, each with its rule, its numbers and a sentence.

A rule compares the numbers behind two methods, for units that are notable according to the first.
Reference: the comments on Theorems 4.1 and 5.1 of Lopardo, Precioso & Garreau, ICML 2024, arXiv:2402.03485.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.errors import brief
from heedful.evaluation.disagreement.accounts import Terms, is_times_input
from heedful.evaluation.disagreement.evidence import Evidence, Passed
from heedful.explainers import Explainer
from heedful.family import members

NOTABLE = 1.0
"""A number is notable if it is at least this many times its mean size over the units of the text."""
NEAR = 0.1
"""A number is near zero if it is at most this share of what it is compared with."""
LARGE = 0.5
"""A number is large if it is at least this share of what it is compared with."""
NOTHING = 1e-6
"""Numbers up to this share of the target are not notable: they may be rounding."""
SATURATED = 0.01
"""A probability is saturated if p (1−p), its slope in the logit, is at most this: p above 0.99 or below 0.01."""

TERM_OF: Mapping[str, str] = {
    "value killed": "value",
    "heads cancel": "cancelling",
    "sign lost": "sign",
    "value typical": "others",
    "replacement not neutral": "replacement",
    "masking law": "moving up",
    "attention path": "attention path",
    "query path": "query path",
    "company": "company",
    "saturation": "bend",
}
"""Every cause, and the term of the accounts that it explains."""


@final
@dataclass(frozen=True)
class Cause:
    """Why methods disagree on a unit; without a unit, on the whole text or on the token that is read out.

    `size` is how much the cause changes scores, in the scale of the target.
    """

    name: str
    unit: int | None
    word: str
    size: float
    numbers: Mapping[str, float]
    sentence: str

    __repr__ = brief


def causes(evidence: Evidence, accounts: Mapping[str, Terms], words: Sequence[str]) -> tuple[Cause, ...]:
    """All causes that the evidence shows, the largest first."""
    shown = [*_of_attention(evidence, words), *_of_removal(evidence, words)]
    shown += [*_of_gradient(evidence, accounts, words), *_of_company(evidence, accounts, words), *_of_text(evidence)]
    return tuple(sorted(shown, key=lambda cause: -cause.size))


def notable(x: Float[np.ndarray, "unit"], level: float) -> Bool[np.ndarray, "unit"]:
    """Where a number is at least as large as its mean size, and larger than rounding of a target of that size."""
    return (np.abs(x) > NOTHING * level) & (np.abs(x) >= (NOTABLE - 1e-9) * np.abs(x).mean())


@final
class AttentionRule(NamedTuple):
    """The units a cause can apply to, the units it applies to, and half of what the first method assigns there."""

    open_to: Bool[np.ndarray, "unit"]
    applies: Bool[np.ndarray, "unit"]
    half: Float[np.ndarray, "unit"]


def attention_rules(passed: Passed) -> dict[str, AttentionRule]:
    """Where attention and contribution differ: small values, signs, heads that cancel, typical values."""
    fair, gross, c = passed.fair, passed.gross, passed.contribution
    size, centred = np.abs(c), np.abs(passed.centred)
    much, level = notable(passed.attention, 0.0), passed.level
    rules = {
        "value killed": (much, gross < NEAR * fair, fair),
        "heads cancel": (notable(gross, level), size <= LARGE * gross, gross),
        "sign lost": (much | notable(c, level), (c < 0) & (size > NEAR * fair), np.zeros_like(c)),
        # Close to the others compared with their scatter, and so close that little of its contribution is its own.
        "value typical": (notable(c, level), (centred <= NEAR * passed.scatter) & (centred <= LARGE * size), size),
    }
    return {name: AttentionRule(much, much & applies, LARGE * whole) for name, (much, applies, whole) in rules.items()}


def _of_attention(evidence: Evidence, words: Sequence[str]) -> Iterator[Cause]:
    passed = evidence.passed
    if passed is None:
        return
    fair, gross, c = passed.fair, passed.gross, passed.contribution
    for name, rule in attention_rules(passed).items():
        for unit in np.flatnonzero(rule.applies).tolist():
            numbers = {"attention": passed.attention[unit], "contribution": c[unit], "gross": gross[unit]}
            times = passed.attention[unit] / passed.attention.mean()
            if name == "value killed":
                size, numbers["fair"] = fair[unit] - gross[unit], fair[unit]
                share = gross[unit] / fair[unit]
                sentence = f"its attention is {times:.1f} times the mean; its value is {share:.0%} of the mean"
            elif name == "heads cancel":
                size = gross[unit] - abs(c[unit])
                sentence = f"its parts, {gross[unit]:.3g} in total size, have opposite signs and sum to {c[unit]:+.3g}"
            elif name == "sign lost":
                size = 2 * abs(c[unit])
                sentence = f"its attention is {times:.1f} times the mean; its contribution is negative: {c[unit]:+.3g}"
            else:
                size = abs(c[unit] - passed.centred[unit])
                numbers |= {"centred": passed.centred[unit], "scatter": passed.scatter[unit]}
                sentence = f"it contributes {c[unit]:+.3g}, but its value is typical: without it the output is the same"
            yield _cause(name, unit, words, size, numbers, sentence)


def _of_removal(evidence: Evidence, words: Sequence[str]) -> Iterator[Cause]:
    """Where the way of removal matters: the replacement has an effect, or replacing and deleting differ."""
    losses = evidence.losses
    nothing, replaced, deleted = (losses.get(absence) for absence in ("mask", "replace", "delete"))
    if nothing is not None and replaced is not None:
        replacement = nothing - replaced
        either = np.maximum(np.abs(nothing), np.abs(replacement))
        for unit in np.flatnonzero(
            notable(either, evidence.level) & (np.abs(replacement) >= LARGE * np.abs(nothing))
        ).tolist():
            numbers = {"masked": nothing[unit], "replaced": replaced[unit], "replacement": replacement[unit]}
            alike = abs(replaced[unit]) <= NEAR * abs(nothing[unit])
            sentence = f"its effect is {nothing[unit]:+.3g} and that of its replacement {replacement[unit]:+.3g}"
            sentence += f", so replacing it changes the output by {'almost 0' if alike else f'{replaced[unit]:+.3g}'}"
            yield _cause("replacement not neutral", unit, words, abs(replacement[unit]), numbers, sentence)
    if replaced is not None and deleted is not None:
        either, gap = np.maximum(np.abs(replaced), np.abs(deleted)), np.abs(replaced - deleted)
        for unit in np.flatnonzero(notable(either, evidence.level) & (gap >= LARGE * either)).tolist():
            numbers = {"replaced": replaced[unit], "deleted": deleted[unit]}
            sentence = f"its effect is {replaced[unit]:+.3g} when replaced and {deleted[unit]:+.3g} when deleted"
            yield _cause("masking law", unit, words, gap[unit], numbers, sentence)


def _of_gradient(evidence: Evidence, accounts: Mapping[str, Terms], words: Sequence[str]) -> Iterator[Cause]:
    """Where gradient × input differs from the contribution: by the unit's attention weight, or by the queries."""
    passed = evidence.passed
    if passed is None:
        return
    c = passed.contribution
    if evidence.path is not None and evidence.bias is not None:
        slope = c + evidence.bias + evidence.path
        for unit in np.flatnonzero(
            notable(slope, evidence.level) & (np.abs(evidence.path) >= LARGE * np.abs(slope))
        ).tolist():
            numbers = {"contribution": c[unit], "attention path": evidence.path[unit], "gradient": slope[unit]}
            path = evidence.path[unit]
            sentence = f"{path:+.3g} of its gradient × input ({slope[unit]:+.3g}) comes from its attention weight"
            yield _cause("attention path", unit, words, abs(evidence.path[unit]), numbers, sentence)
    own = next((terms for method, terms in accounts.items() if is_times_input(method)), None)
    if evidence.query is not None and own is not None:
        slope = sum(own.values(), np.zeros_like(c))
        for unit in np.flatnonzero(
            notable(slope, evidence.level) & (np.abs(evidence.query) >= LARGE * np.abs(slope))
        ).tolist():
            numbers = {"query path": evidence.query[unit], "gradient": slope[unit]}
            sentence = (
                f"{evidence.query[unit]:+.3g} of its gradient × input ({slope[unit]:+.3g}) comes through the queries"
            )
            yield _cause("query path", unit, words, abs(evidence.query[unit]), numbers, sentence)


def _of_company(evidence: Evidence, accounts: Mapping[str, Terms], words: Sequence[str]) -> Iterator[Cause]:
    """Where a unit has another effect when others are removed too, or the probability is not linear."""
    catalogue = members("heedful.explainers", Explainer)
    joint = {name: catalogue[name].joint_rank for name in accounts if "company" in accounts[name] and name in catalogue}
    ranked = sorted((rank, name) for name, rank in joint.items() if rank is not None)
    if ranked:
        _, method = ranked[0]
        company = accounts[method]["company"]
        scores = sum(accounts[method].values(), np.zeros_like(company))
        alone = scores - company
        either = np.maximum(np.abs(scores), np.abs(alone))
        for unit in np.flatnonzero(notable(either, evidence.level) & (np.abs(company) >= LARGE * either)).tolist():
            numbers = {"alone": alone[unit], method: scores[unit]}
            sentence = f"removed alone its effect is {alone[unit]:+.3g}, with others {scores[unit]:+.3g} ({method})"
            yield _cause("company", unit, words, abs(company[unit]), numbers, sentence)
    if "replace" in evidence.straight:
        straight, loss = evidence.straight["replace"], evidence.losses["replace"]
        either, bend = np.maximum(np.abs(loss), np.abs(straight)), np.abs(loss - straight)
        for unit in np.flatnonzero(notable(either, evidence.level) & (bend >= LARGE * either)).tolist():
            sentence = f"its effect is {loss[unit]:+.3g}; by the slope at this text it would be {straight[unit]:+.3g}"
            numbers = {"replaced": loss[unit], "by the slope": straight[unit]}
            yield _cause("saturation", unit, words, bend[unit], numbers, sentence)


def _of_text(evidence: Evidence) -> Iterator[Cause]:
    """What holds for the whole text: the gradient through the query, and a probability near 0 or 1."""
    if evidence.at_readout is not None:
        query, rest = evidence.at_readout
        if abs(query) >= LARGE * abs(rest) and query:
            sentence = (
                f"at [cls] gradient × input is {query + rest:+.3g}, of which {query:+.3g} comes through the query, "
                "which Theorem 4.1 holds fixed; words have no such part"
            )
            yield _cause("query path", None, ["[cls]"], abs(query), {"query path": query, "rest": rest}, sentence)
    p = evidence.probability
    if p is not None and p * (1 - p) <= SATURATED:
        sentence = (
            f"the probability of the target is {p:.4f}: a change of 1 in its logit changes it by {p * (1 - p):.2g}, "
            f"and its logarithm by {1 - p:.2g}, so scores of probabilities are much smaller than scores of logits"
        )
        yield _cause("saturation", None, [""], 0.0, {"probability": p, "slope": p * (1 - p)}, sentence)


def _cause(
    name: str, unit: int | None, words: Sequence[str], size: float, numbers: Mapping[str, float], sentence: str
) -> Cause:
    plain = {key: float(value) for key, value in numbers.items()}
    return Cause(name, unit, words[unit or 0], float(size), plain, f"{sentence}.")
