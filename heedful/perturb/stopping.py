"""Sampling until a claim is certain: the signs of the strongest units, or which units are the strongest."""

from dataclasses import dataclass, replace
from math import ceil, log
from typing import Literal, final

import numpy as np
from jaxtyping import Float, Int

from heedful.document import Unit
from heedful.document.note import Note, NoteKind
from heedful.errors import BadInput
from heedful.models.question import Question
from heedful.perturb.gradient_guess import N_SLOPES, interior_slopes
from heedful.perturb.moments import Estimate, Moments
from heedful.perturb.rounds import FEWEST_MASKS, Plan, Sampled, Samples, stopped_note
from heedful.perturb.size_law import KnownLaw
from heedful.perturb.sweep import Interrupted, Sweep
from heedful.statistics.intervals import student

Until = Literal["width", "signs", "top"]
"""Stopping criteria: narrow intervals, certain signs of the strongest units, or a certain set of strongest units."""

Slopes = Float[np.ndarray, "stage unit"] | None

_FIRST = 32
_GROWTH = 1.25
_NAMED = 8
_MOST_CELLS = 40_000_000
"""The maximum of masks × units in memory: about two gigabytes."""
_MANY = 20
_LISTED = 8
"""Up to this number of units, every mask is evaluated."""


@final
@dataclass(frozen=True)
class Goal:
    """What must be certain, for how many of the strongest units, and with which confidence.

    The confidence holds for all units and all looks together: α is divided among them (Bonferroni), so it stays valid
    although the strongest units and the stopping time are chosen from the same data. Each interval is Student's, and as
    exact as means of some thirty pairs are normal. Scores that certainly lie within `tolerance` of zero count as zero;
    scores that certainly lie within it of each other count as tied.
    """

    until: Until
    strongest: int
    confidence: float
    tolerance: float
    budget: int

    def check(self, name: str) -> None:
        """Refuses invalid settings; `name` is the method, for the message."""
        if self.strongest < 1 or not 0.5 <= self.confidence < 1:
            raise BadInput(f"{name} needs strongest of at least 1 and a confidence from 0.5 to below 1.")

    def needs_moments(self, plan: Plan, n_units: int, free: bool) -> bool:
        """Whether to use the known moments of the law instead of a regression.

        That is so for a certificate, for few masks, and for up to sixty masks a unit that are not `free`: there the
        gradients save many masks.
        """
        if plan.n_samples == "auto":
            return self.until != "width" and n_units > _LISTED
        if plan.a_unit < 1.5 or plan.n_samples < FEWEST_MASKS:
            return False
        saves_masks = (
            not free and n_units > _MANY and plan.n_samples < 60 * n_units and plan.n_samples * n_units < 4_000_000
        )
        return saves_masks or plan.too_few(n_units)

    def listing(self, plan: Plan, n_units: int) -> Plan:
        """The plan, with a sample size that evaluates every mask if `lists` says so."""
        return replace(plan, n_samples=5000) if self.lists(plan, n_units) else plan

    def lists(self, plan: Plan, n_units: int) -> bool:
        """Whether every mask is evaluated: a certificate is requested for few units, so the result is exact."""
        return plan.n_samples == "auto" and self.until != "width" and n_units <= _LISTED

    def exact(self, scores: Float[np.ndarray, "unit"], units: tuple[str, ...]) -> tuple[str, dict[str, int | float]]:
        """The claim where every mask was evaluated, as a sentence and as facts."""
        top = np.argsort(-np.abs(scores), kind="stable")[: self.strongest]
        sentence = f"Every mask was evaluated, so the scores are exact: {_listed(units, top)} are the strongest."
        return sentence, {"certain_top" if self.until == "top" else "certain_signs": len(top)}

    @property
    def n_looks(self) -> int:
        """How often the goal may be checked before the budget is spent."""
        return 1 + max(0, ceil(log(max(1.0, self.budget / (2 * _FIRST))) / log(_GROWTH)))

    def judge(self, estimate: Estimate, units: tuple[str, ...]) -> tuple[bool, str, dict[str, int | float]]:
        """Whether the goal is reached, and the claims as a sentence and as facts."""
        return self._top(estimate, units) if self.until == "top" else self._signs(estimate, units)

    def _signs(self, estimate: Estimate, units: tuple[str, ...]) -> tuple[bool, str, dict[str, int | float]]:
        scores, deviations = estimate.scores, estimate.deviations
        top = np.argsort(-np.abs(scores), kind="stable")[: self.strongest]
        reach = self._reach(len(estimate.terms), len(scores)) * deviations[top]
        certain = np.abs(scores[top]) > reach
        small = np.abs(scores[top]) + reach <= self.tolerance
        sentence = []
        if certain.any():
            sentence.append(f"The signs of {_listed(units, top[certain])} are certain at {self.confidence:.0%}.")
        if not certain.all():
            why = f"lie within ±{self.tolerance:g} of zero" if small[~certain].all() else "may have either sign"
            sentence.append(f"{_listed(units, top[~certain])} {why}.")
        return bool((certain | small).all()), " ".join(sentence), {"certain_signs": int(certain.sum())}

    def _top(self, estimate: Estimate, units: tuple[str, ...]) -> tuple[bool, str, dict[str, int | float]]:
        scores = estimate.scores
        order = np.argsort(-np.abs(scores), kind="stable")
        strong, weak = order[: self.strongest], order[self.strongest :]
        signed = estimate.terms * np.where(scores < 0, -1.0, 1.0)
        n_pairs, reach = len(signed), self._reach(len(signed), len(strong) * max(1, len(weak)))
        centred = signed - signed.mean(axis=0)
        # Sums of products, not a matrix product: the same bytes wherever the memory lies.
        cross = np.einsum("pk,pj->kj", centred[:, strong], centred[:, weak])
        square = (centred**2).sum(axis=0)
        variance = (square[strong][:, None] + square[weak] - 2 * cross) / (n_pairs - 1) / n_pairs
        half = reach * np.sqrt(np.maximum(variance, 0.0))
        ahead = np.abs(scores)[strong][:, None] - np.abs(scores)[weak]
        separate, tied = ahead > half, ahead + half <= self.tolerance
        certain = separate.all(axis=1)
        sentence = []
        if certain.any():
            names = _listed(units, strong[certain])
            sentence.append(f"Among the {len(strong)} strongest for certain ({self.confidence:.0%}): {names}.")
        if not certain.all():
            rivals = _listed(units, weak[(~separate)[~certain].any(axis=0)])
            how = f"tied (to within {self.tolerance:g}) with" if (separate | tied).all() else "not distinguishable from"
            sentence.append(f"At the boundary, {_listed(units, strong[~certain])} are {how} {rivals}.")
        return bool((separate | tied).all()), " ".join(sentence), {"certain_top": int(certain.sum())}

    def _reach(self, n_pairs: int, n_claims: int) -> float:
        """The required distance to a false claim in standard errors: one-sided, Bonferroni over claims and looks."""
        return student(1 - (1 - self.confidence) / (n_claims * self.n_looks), float(n_pairs - 1))


@final
class Pairs:
    """Masks drawn in pairs of complements, and their values; a stop by the user keeps those evaluated so far."""

    def __init__(self, law: KnownLaw, sweep: Sweep, rng: np.random.Generator) -> None:
        self.law, self.sweep, self.rng = law, sweep, rng
        self.keep = np.zeros((0, 2, sweep.n_units), dtype=bool)
        self.values = np.zeros((0, 2))
        self.stopped = False
        everything, nothing = sweep(np.array([[True], [False]]).repeat(sweep.n_units, axis=1)).tolist()
        self.ends = nothing, everything

    def more(self, n_new: int) -> None:
        """Draws more pairs; if the user stops, keeps those that were evaluated, unless they are too few."""
        fresh = self.law.draw(n_new, self.rng)
        complete = np.ones(n_new, dtype=bool)
        try:
            values = self.sweep(fresh.reshape(2 * n_new, -1))
        except Interrupted as partial:
            complete, values = partial.evaluated.reshape(-1, 2).all(axis=1), partial.values
            if len(self.keep) + complete.sum() < FEWEST_MASKS // 2 - 1:
                raise
            self.stopped = True
        self.keep = np.concatenate([self.keep, fresh[complete]])
        self.values = np.concatenate([self.values, values.reshape(-1, 2)[complete]])


def by_moments(
    question: Question, index: int, unit: Unit, n_samples: Samples, goal: Goal, pairs: Pairs, efficient: bool
) -> Sampled:
    """A linear surrogate from pairs of masks: `n_samples` of them, or as many as the goal needs."""
    slopes = interior_slopes(question, index, unit)
    if n_samples == "auto":
        result = certify(goal, pairs, slopes, efficient, question.documents[index].units(unit))
    else:
        result = take_few(n_samples, pairs, slopes, efficient)
    passes = {} if slopes is None else {"forwards": 1 + N_SLOPES, "backwards": N_SLOPES}
    return replace(result, more={**result.more, **passes})


def certify(goal: Goal, pairs: Pairs, slopes: Slopes, efficient: bool, units: tuple[str, ...]) -> Sampled:
    """Draws pairs, a quarter more at every look, until the goal is reached, the budget spent or the user stops."""
    d, n_pairs = pairs.law.n_units, min(_FIRST, (goal.budget - 2) // 2)
    if goal.budget < FEWEST_MASKS:
        raise BadInput(f"A certificate needs a budget of at least {FEWEST_MASKS} masks; it is {goal.budget}.")
    moments, budget = Moments(pairs.law, pairs.ends, slopes, efficient), min(goal.budget, _MOST_CELLS // d)
    while True:
        pairs.more(n_pairs - len(pairs.keep))
        estimate = moments.fit(pairs.keep, pairs.values)
        reached, sentence, facts = goal.judge(estimate, units)
        n_pairs = int(len(pairs.keep) * _GROWTH)
        spent = 2 * n_pairs + 2 > budget
        if pairs.stopped or reached or spent:
            reason: tuple[str, NoteKind] = ("Stopped at the budget", "budget")
            if pairs.stopped or reached:
                reason = ("Stopped by the user", "stopped") if pairs.stopped else ("Stopped", "reached")
            note = Note(f"{reason[0]} after {pairs.sweep.n_masks:,} masks. {sentence}", reason[1])
            return Sampled(estimate.as_line(), 2 * len(pairs.keep), pairs.sweep.n_evaluated, (note,), facts)


def take_few(n_samples: int, pairs: Pairs, slopes: Slopes, efficient: bool) -> Sampled:
    """A linear surrogate from a given number of masks, too few for a regression."""
    pairs.sweep.expected = n_samples
    pairs.more(max(FEWEST_MASKS // 2 - 1, (n_samples - 2) // 2))
    line = Moments(pairs.law, pairs.ends, slopes, efficient).fit(pairs.keep, pairs.values).as_line()
    notes = (stopped_note(pairs.sweep.n_masks, n_samples),) if pairs.stopped else ()
    return Sampled(line, 2 * len(pairs.keep), pairs.sweep.n_evaluated, notes)


def _listed(units: tuple[str, ...], chosen: Int[np.ndarray, "_"]) -> str:
    """Units by name, with the number of the occurrence where a name occurs several times."""
    names = []
    for index in chosen[:_NAMED].tolist():
        which = f" ({units[: index + 1].count(units[index])})" if units.count(units[index]) > 1 else ""
        names.append(f"“{units[index]}”{which}")
    if len(chosen) > _NAMED:
        names.append(f"{len(chosen) - _NAMED} more")
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
