"""The causes of disagreement, each with its rule, its numbers and a sentence.

A rule compares what one method sees with what another one does, and speaks only of units that the first finds notable.
Reference: the comments on Theorems 4.1 and 5.1 of Lopardo, Precioso & Garreau, ICML 2024, arXiv:2402.03485.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.evaluation.disagreement.accounts import Terms
from heedful.evaluation.disagreement.evidence import Evidence, Passed

NOTABLE = 1.0
"""A number is notable where it is at least so many times the mean size of that number over the text's units."""
NEAR = 0.1
"""Next to nothing: at most so much of what it is compared with."""
LARGE = 0.5
"""Much: at least so much of what it is compared with."""
NOTHING = 1e-6
"""No number is notable that is at most so much of the target: it may be rounding."""
SATURATED = 0.01
"""A probability is saturated where p (1−p), what it moves by for a logit, is at most this: p beyond 0.99 or 0.01."""

COMPANIONS = ("lime-exact", "shapley-exact", "lime", "shapley-sampled", "hierarchical-shapley", "banzhaf-exact")
"""Methods that remove units together, the first that was asked being compared with leave-one-out."""

TERM_OF: Mapping[str, str] = {
    "value killed": "value",
    "heads cancel": "cancelling",
    "sign lost": "sign",
    "value typical": "others",
    "replacement not neutral": "stand-in",
    "masking law": "moving up",
    "attention path": "attention path",
    "query path": "query path",
    "company": "company",
    "saturation": "bend",
}
"""Every cause, and the term of the accounts that it is about."""


@final
@dataclass(frozen=True)
class Cause:
    """Why methods give a unit different standing; of the whole text, or of the token that is read out, if it has none.

    `size` is by how much the cause moves scores, in the target's scale.
    """

    name: str
    unit: int | None
    word: str
    size: float
    numbers: Mapping[str, float]
    sentence: str


def causes(evidence: Evidence, accounts: Mapping[str, Terms], words: Sequence[str]) -> tuple[Cause, ...]:
    """All causes that the evidence shows, the largest first."""
    found = [*_of_attention(evidence, words), *_of_removal(evidence, words)]
    found += [*_of_gradient(evidence, accounts, words), *_of_company(evidence, accounts, words), *_of_text(evidence)]
    return tuple(sorted(found, key=lambda cause: -cause.size))


def notable(x: Float[np.ndarray, "unit"], level: float) -> Bool[np.ndarray, "unit"]:
    """Where a number is as large as it is on average, and more than rounding of so large a target; equals all are."""
    return (np.abs(x) > NOTHING * level) & (np.abs(x) >= (NOTABLE - 1e-9) * np.abs(x).mean())


@final
class Rule(NamedTuple):
    """Of which units a cause can be found, of which it is, and what would be half of what the one method sees there."""

    open_to: Bool[np.ndarray, "unit"]
    found: Bool[np.ndarray, "unit"]
    half: Float[np.ndarray, "unit"]


def attention_rules(passed: Passed) -> dict[str, Rule]:
    """Where attention and what it carries part: size, sign, heads that cancel, and values like all others."""
    fair, gross, c = passed.fair, passed.gross, passed.contribution
    size, centred = np.abs(c), np.abs(passed.centred)
    much, level = notable(passed.attention, 0.0), passed.level
    rules = {
        "value killed": (much, gross <= NEAR * fair, fair),
        "heads cancel": (notable(gross, level), size <= LARGE * gross, gross),
        "sign lost": (much | notable(c, level), (c < 0) & (size > NEAR * fair), np.zeros_like(c)),
        # Like the others beside how they scatter, and so like them that little of what it carries is its own.
        "value typical": (notable(c, level), (centred <= NEAR * passed.scatter) & (centred <= LARGE * size), size),
    }
    return {name: Rule(much, much & found, LARGE * whole) for name, (much, found, whole) in rules.items()}


def _of_attention(evidence: Evidence, words: Sequence[str]) -> Iterator[Cause]:
    passed = evidence.passed
    if passed is None:
        return
    fair, gross, c = passed.fair, passed.gross, passed.contribution
    for name, rule in attention_rules(passed).items():
        for unit in np.flatnonzero(rule.found).tolist():
            numbers = {"attention": passed.attention[unit], "contribution": c[unit], "gross": gross[unit]}
            times = passed.attention[unit] / passed.attention.mean()
            if name == "value killed":
                size, numbers["fair"] = fair[unit] - gross[unit], fair[unit]
                share = gross[unit] / fair[unit]
                said = f"attention gives it {times:.1f} times the mean unit's; its value is {share:.0%} of the mean"
            elif name == "heads cancel":
                size = gross[unit] - abs(c[unit])
                said = f"what it carries, {gross[unit]:.3g} in all, speaks for and against and leaves {c[unit]:+.3g}"
            elif name == "sign lost":
                size = 2 * abs(c[unit])
                said = f"attention gives it {times:.1f} times the mean unit's; its value speaks against: {c[unit]:+.3g}"
            else:
                size = abs(c[unit] - passed.centred[unit])
                numbers |= {"centred": passed.centred[unit], "scatter": passed.scatter[unit]}
                said = f"it carries {c[unit]:+.3g}, but its value is the average: without it the rest says the same"
            yield _cause(name, unit, words, size, numbers, said)


def _of_removal(evidence: Evidence, words: Sequence[str]) -> Iterator[Cause]:
    """Where what is left behind decides: the stand-in speaks itself, or replacing and deleting differ."""
    losses = evidence.losses
    nothing, replaced, deleted = (losses.get(absence) for absence in ("mask", "replace", "delete"))
    if nothing is not None and replaced is not None:
        stand_in = nothing - replaced
        either = np.maximum(np.abs(nothing), np.abs(stand_in))
        for unit in np.flatnonzero(
            notable(either, evidence.level) & (np.abs(stand_in) >= LARGE * np.abs(nothing))
        ).tolist():
            numbers = {"masked": nothing[unit], "replaced": replaced[unit], "stand-in": stand_in[unit]}
            alike = abs(replaced[unit]) <= NEAR * abs(nothing[unit])
            said = f"it counts {nothing[unit]:+.3g} and what stands in for it {stand_in[unit]:+.3g}"
            said += f", so replacing it shows {'next to nothing' if alike else f'{replaced[unit]:+.3g}'}"
            yield _cause("replacement not neutral", unit, words, abs(stand_in[unit]), numbers, said)
    if replaced is not None and deleted is not None:
        either, gap = np.maximum(np.abs(replaced), np.abs(deleted)), np.abs(replaced - deleted)
        for unit in np.flatnonzero(notable(either, evidence.level) & (gap >= LARGE * either)).tolist():
            numbers = {"replaced": replaced[unit], "deleted": deleted[unit]}
            said = f"replaced it counts {replaced[unit]:+.3g}, deleted {deleted[unit]:+.3g}"
            yield _cause("masking law", unit, words, gap[unit], numbers, said)


def _of_gradient(evidence: Evidence, accounts: Mapping[str, Terms], words: Sequence[str]) -> Iterator[Cause]:
    """Where gradient × input is not the contribution: through a unit's own attention, or through the queries."""
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
            said = f"of its gradient × input, {slope[unit]:+.3g}, more attention would do {evidence.path[unit]:+.3g}"
            yield _cause("attention path", unit, words, abs(evidence.path[unit]), numbers, said)
    if evidence.query is not None and "gradient-x-input" in accounts:
        slope = sum(accounts["gradient-x-input"].values(), np.zeros_like(c))
        for unit in np.flatnonzero(
            notable(slope, evidence.level) & (np.abs(evidence.query) >= LARGE * np.abs(slope))
        ).tolist():
            numbers = {"query path": evidence.query[unit], "gradient": slope[unit]}
            said = f"of its gradient × input, {slope[unit]:+.3g}, {evidence.query[unit]:+.3g} runs through the queries"
            yield _cause("query path", unit, words, abs(evidence.query[unit]), numbers, said)


def _of_company(evidence: Evidence, accounts: Mapping[str, Terms], words: Sequence[str]) -> Iterator[Cause]:
    """Where a unit counts otherwise when others are gone too, or a probability bends on the way."""
    method = next((name for name in COMPANIONS if "company" in accounts.get(name, {})), None)
    if method is not None:
        company = accounts[method]["company"]
        scores = sum(accounts[method].values(), np.zeros_like(company))
        alone = scores - company
        either = np.maximum(np.abs(scores), np.abs(alone))
        for unit in np.flatnonzero(notable(either, evidence.level) & (np.abs(company) >= LARGE * either)).tolist():
            numbers = {"alone": alone[unit], method: scores[unit]}
            said = f"gone alone it counts {alone[unit]:+.3g}, gone with others {scores[unit]:+.3g} ({method})"
            yield _cause("company", unit, words, abs(company[unit]), numbers, said)
    if "replace" in evidence.straight:
        straight, loss = evidence.straight["replace"], evidence.losses["replace"]
        either, bend = np.maximum(np.abs(loss), np.abs(straight)), np.abs(loss - straight)
        for unit in np.flatnonzero(notable(either, evidence.level) & (bend >= LARGE * either)).tolist():
            said = f"it counts {loss[unit]:+.3g}; by the slope at this text it would be {straight[unit]:+.3g}"
            numbers = {"replaced": loss[unit], "by the slope": straight[unit]}
            yield _cause("saturation", unit, words, bend[unit], numbers, said)


def _of_text(evidence: Evidence) -> Iterator[Cause]:
    """What holds for the whole text: the query's own gradient, and a probability near its end."""
    if evidence.at_readout is not None:
        query, rest = evidence.at_readout
        if abs(query) >= LARGE * abs(rest) and query:
            said = (
                f"at [cls] gradient × input is {query + rest:+.3g}, of which {query:+.3g} runs through the query it "
                "feeds, which Theorem 4.1 holds fixed; no word has such a part"
            )
            yield _cause("query path", None, ["[cls]"], abs(query), {"query path": query, "rest": rest}, said)
    p = evidence.probability
    if p is not None and p * (1 - p) <= SATURATED:
        said = (
            f"the target's probability is {p:.4f}: a logit more or less moves it by no more than {p * (1 - p):.2g}, "
            f"and its logarithm by {1 - p:.2g}, so methods on probabilities see little of what methods on logits see"
        )
        yield _cause("saturation", None, [""], 0.0, {"probability": p, "slope": p * (1 - p)}, said)


def _cause(
    name: str, unit: int | None, words: Sequence[str], size: float, numbers: Mapping[str, float], sentence: str
) -> Cause:
    plain = {key: float(value) for key, value in numbers.items()}
    return Cause(name, unit, words[unit or 0], float(size), plain, f"{sentence}.")
