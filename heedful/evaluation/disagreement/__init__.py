"""Why methods disagree on a text: exact for models that pool once by attention, a tested diagnosis for others.

It does not judge methods: two methods that differ may both be right, because they answer different questions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import isnan
from typing import final

import numpy as np

from heedful.document import Absence
from heedful.document.draws import draws_of
from heedful.errors import BadInput, brief
from heedful.evaluation.disagreement.accounts import TERMS, Terms, accounts, removal_kind
from heedful.evaluation.disagreement.causes import TERM_OF, Cause, causes
from heedful.evaluation.disagreement.evidence import Evidence
from heedful.evaluation.disagreement.measured import measured_evidence
from heedful.evaluation.disagreement.pairs import MethodPair, UnitGap, pairs, representatives, widest
from heedful.evaluation.disagreement.pooled import pooled_evidence
from heedful.evaluation.disagreement.reliability import Reliability, reliability
from heedful.explanation import Explanation
from heedful.models.pooling import PoolingModel
from heedful.models.question import Question

__all__ = ["Cause", "Disagreement", "Evidence", "MethodPair", "Reliability", "UnitGap", "explain_disagreement"]


@final
@dataclass(frozen=True, eq=False)
class Disagreement:
    """Why methods disagree on the units of a text.

    `exact` says whether the numbers are exact, or a diagnosis that `reliability` has tested by removing units.
    `accounts` are the terms of every method that has some; they sum to its scores.
    """

    exact: bool
    explanations: tuple[Explanation, ...]
    evidence: Evidence
    accounts: Mapping[str, Terms]
    causes: tuple[Cause, ...]
    reliability: tuple[Reliability, ...]
    notes: tuple[str, ...]

    __repr__ = brief

    @property
    def words(self) -> tuple[str, ...]:
        """The units of the text."""
        return self.explanations[0].units

    @cached_property
    def pairs(self) -> tuple[MethodPair, ...]:
        """Every two methods, and the units on which they disagree most."""
        return pairs(self.explanations, self.accounts)

    @cached_property
    def accounted(self) -> tuple[MethodPair, ...]:
        """Every two methods that both have an account."""
        return pairs([e for e in self.explanations if e.method in self.accounts], self.accounts)

    @property
    def representatives(self) -> tuple[str, ...]:
        """One method of each kind among those that have an account."""
        return tuple(e.method for e in representatives([e for e in self.explanations if e.method in self.accounts]))

    def of(self, unit: int) -> tuple[Cause, ...]:
        """The causes of one unit, the largest first."""
        return tuple(cause for cause in self.causes if cause.unit == unit)

    def reason(self, gap: UnitGap) -> str:
        """Why two methods disagree on a unit: the sentence of its cause, or its largest term."""
        if gap.term is None:
            return "the terms of this pair are unknown."
        for cause in self.of(gap.unit):
            if TERM_OF[cause.name] == gap.term:
                return f"{cause.name}: {cause.sentence}"
        passed = self.evidence.passed
        if gap.term == "value" and passed is not None and passed.fair[gap.unit] > 0:
            return f"its value is {passed.gross[gap.unit] / passed.fair[gap.unit]:.2g} times the mean over the text."
        return f"{TERMS[gap.term]} ({gap.terms[gap.term]:+.3g})."

    def widest(self, n: int) -> tuple[MethodPair, ...]:
        """The n units on which two methods differ most, each in a pair with these two methods."""
        return widest(self.explanations, self.accounts, n)

    def as_dict(self) -> dict[str, object]:
        """Everything but pairs without an account, ready for JSON; terms that methods share are written once."""
        terms, parts = _shared(self.accounts)
        return {
            "exact": self.exact,
            "causes": [asdict(cause) for cause in self.causes],
            "reliability": [asdict(test) for test in self.reliability],
            "terms": {name: term.tolist() for name, term in terms.items()},
            "accounts": parts,
            "pairs": [_pair_as_dict(pair) for pair in self.accounted],
            "notes": list(self.notes),
        }


def _shared(accounts: Mapping[str, Terms]) -> tuple[Terms, dict[str, list[str]]]:
    """Every term once under a name of its own, and for each method the names of its terms."""
    terms: Terms = {}
    parts: dict[str, list[str]] = {}
    for method, own in accounts.items():
        for name, term in own.items():
            key = name if np.array_equal(terms.setdefault(name, term), term) else f"{name}, {method}"
            terms[key] = term
            parts.setdefault(method, []).append(key)
    return terms, parts


def _pair_as_dict(pair: MethodPair) -> dict[str, object]:
    units = [{"unit": gap.unit, "places": gap.places, "share": gap.share, "term": gap.term} for gap in pair.units]
    correlation = None if isnan(pair.correlation) else pair.correlation
    return {"one": pair.one, "other": pair.other, "correlation": correlation, "units": units}


def explain_disagreement(
    question: Question, explanations: Sequence[Explanation], absences: Sequence[Absence] = ()
) -> Disagreement:
    """Why these explanations of a question's one document differ.

    On a model that pools by attention everything is exact, without further passes. On a model of layers with gradients
    it takes a forward and a backward pass, two of each if the gradient is not computed yet; the effect of removing
    units comes from leave-one-out explanations, and is measured for each of `absences` with one mask per unit.
    """
    if len(question.documents) != 1:
        raise BadInput(f"explain_disagreement takes a question about one text; this one has {len(question.documents)}.")
    if not explanations:
        raise BadInput("No explanations were given; give at least one.")
    first = explanations[0]
    if any(e.units != first.units or e.target != question.targets[0] for e in explanations):
        raise BadInput("The explanations differ in text, target or unit; give those of one question.")
    # Where words are drawn, the closed forms of a pooling model do not hold.
    drawn = any(draws_of(str(e.settings.get("absence", ""))) for e in explanations)
    if isinstance(question.model, PoolingModel) and not drawn:
        named = [str(e.settings.get("absence", "replace")) for e in explanations if removal_kind(e.method) is not None]
        evidence = pooled_evidence(question, first.unit, [*named, *absences])
    else:
        evidence = measured_evidence(question, first.unit, explanations, absences)
    terms = accounts(evidence, explanations)
    tests = () if evidence.exact or evidence.passed is None else reliability(evidence.passed, evidence.losses)
    tested = tuple(test for test in tests if test.diagnosed)
    shown = causes(evidence, terms, first.units)
    return Disagreement(evidence.exact, tuple(explanations), evidence, terms, shown, tested, _notes(evidence))


def _notes(evidence: Evidence) -> tuple[str, ...]:
    """What could not be computed for this model, and why."""
    if evidence.exact:
        return ()
    notes = []
    if evidence.passed is None:
        notes.append(
            "The attention or the gradient of this model is not available, so causes by sign, value and "
            "query path are unknown."
        )
    if not evidence.losses:
        notes.append("No units were removed, so no diagnosis was tested; add leave-one-out to test them.")
    elif len(evidence.losses) == 1:
        notes.append(
            f"Units were removed in one way only ({next(iter(evidence.losses))}), so the effects of "
            "replacement and deletion are unknown."
        )
    return tuple(notes)
