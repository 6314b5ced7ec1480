"""Why methods differ on a text: exact where attention pools once, a tested diagnostic elsewhere.

It describes and judges nobody: where two methods differ neither need be wrong, they answer different questions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import isnan
from typing import final

import numpy as np

from heedful.document import Absence
from heedful.errors import BadInput
from heedful.evaluation.disagreement.accounts import REMOVAL, TERMS, Terms, accounts
from heedful.evaluation.disagreement.causes import TERM_OF, Cause, causes
from heedful.evaluation.disagreement.evidence import Evidence
from heedful.evaluation.disagreement.measured import measured_evidence
from heedful.evaluation.disagreement.pairs import Apart, Pair, pairs, representatives, widest
from heedful.evaluation.disagreement.pooled import pooled_evidence
from heedful.evaluation.disagreement.reliability import Reliability, reliability
from heedful.explanation import Explanation
from heedful.models.pooling import PoolingModel
from heedful.models.question import Question

__all__ = ["Apart", "Cause", "Disagreement", "Evidence", "Pair", "Reliability", "explain_disagreement"]


@final
@dataclass(frozen=True, eq=False)
class Disagreement:
    """Why methods give the units of a text different standing.

    `exact` says whether the numbers are the model's own, or a diagnostic that `reliability` has tested by taking units
    out. `accounts` are the terms of every method that has some; they sum to its scores.
    """

    exact: bool
    explanations: tuple[Explanation, ...]
    evidence: Evidence
    accounts: Mapping[str, Terms]
    causes: tuple[Cause, ...]
    reliability: tuple[Reliability, ...]
    notes: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return self.explanations[0].units

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every two methods, and the units on which they disagree most."""
        return pairs(self.explanations, self.accounts)

    @cached_property
    def accounted(self) -> tuple[Pair, ...]:
        """Every two methods that both have an account."""
        return pairs([e for e in self.explanations if e.method in self.accounts], self.accounts)

    @property
    def representatives(self) -> tuple[str, ...]:
        """One method of each kind among those that have an account."""
        return tuple(e.method for e in representatives([e for e in self.explanations if e.method in self.accounts]))

    def of(self, unit: int) -> tuple[Cause, ...]:
        """The causes of one unit, the largest first."""
        return tuple(cause for cause in self.causes if cause.unit == unit)

    def reason(self, apart: Apart) -> str:
        """A unit's largest term between two methods in words: its cause's sentence, if a cause was found."""
        if apart.term is None:
            return "no account is known for this pair."
        for cause in self.of(apart.unit):
            if TERM_OF[cause.name] == apart.term:
                return f"{cause.name}: {cause.sentence}"
        passed = self.evidence.passed
        if apart.term == "value" and passed is not None and passed.fair[apart.unit] > 0:
            return f"its value is {passed.gross[apart.unit] / passed.fair[apart.unit]:.2g} times the text's mean."
        return f"{TERMS[apart.term]} ({apart.terms[apart.term]:+.3g})."

    def widest(self, n: int) -> tuple[Pair, ...]:
        """The n units that two methods see most differently, each in a pair of its own with the two that do."""
        return widest(self.explanations, self.accounts, n)

    def as_dict(self) -> dict[str, object]:
        """Everything but pairs without an account, ready for JSON; terms that methods share are written once."""
        terms, parts = _shared(self.accounts)
        return {
            "exact": self.exact,
            "causes": [asdict(cause) for cause in self.causes],
            "reliability": [asdict(one) for one in self.reliability],
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


def _pair_as_dict(pair: Pair) -> dict[str, object]:
    units = [{"unit": one.unit, "places": one.places, "share": one.share, "term": one.term} for one in pair.units]
    correlation = None if isnan(pair.correlation) else pair.correlation
    return {"one": pair.one, "other": pair.other, "correlation": correlation, "units": units}


def explain_disagreement(
    question: Question, explanations: Sequence[Explanation], absences: Sequence[Absence] = ()
) -> Disagreement:
    """Why these explanations of a question's one document differ.

    On a model that pools by attention everything is exact and nothing is asked. On a model of layers with gradients it
    takes a forward and a backward pass, two of each where nobody has asked for the gradient yet; what units cost is
    read from a leave-one-out explanation, and measured for each of `absences` at a mask a unit and one more.
    """
    if len(question.documents) != 1:
        raise BadInput(f"Disagreement is about one text at a time; {len(question.documents)} were asked about.")
    if not explanations:
        raise BadInput("There is no explanation, so there is nothing to disagree; give at least one.")
    first = explanations[0]
    if any(e.units != first.units or e.target != question.targets[0] for e in explanations):
        raise BadInput("The explanations are not all of this text, target and unit; give those of one question.")
    if isinstance(question.model, PoolingModel):
        named = [str(e.settings.get("absence", "replace")) for e in explanations if e.method in REMOVAL]
        evidence = pooled_evidence(question, first.unit, [*named, *absences])
    else:
        evidence = measured_evidence(question, first.unit, explanations, absences)
    terms = accounts(evidence, explanations)
    found = causes(evidence, terms, first.units)
    tests = () if evidence.exact or evidence.passed is None else reliability(evidence.passed, evidence.losses)
    tested = tuple(test for test in tests if test.found)
    return Disagreement(evidence.exact, tuple(explanations), evidence, terms, found, tested, _notes(evidence))


def _notes(evidence: Evidence) -> tuple[str, ...]:
    """What cannot be said of this model, and why."""
    if evidence.exact:
        return ()
    notes = []
    if evidence.passed is None:
        notes.append(
            "Attention and its gradient cannot be seen in this model, so nothing is said of sign, value and query path."
        )
    if not evidence.losses:
        notes.append("Nothing was left out of the text, so no diagnosis was tested; leave-one-out would test them.")
    elif len(evidence.losses) == 1:
        notes.append(
            f"Units were taken out in one way alone ({next(iter(evidence.losses))}), so nothing is said of what stands "
            "in for them and of replacing against deleting."
        )
    return tuple(notes)
