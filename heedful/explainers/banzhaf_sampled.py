"""Banzhaf values from a few well-chosen masks, for every model, with an interval on each."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.explainers import CertifiedExplainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.folded import fit_banzhaf, folded_draws
from heedful.perturb.forecast import MaskCount
from heedful.perturb.hadamard import smallest_order
from heedful.perturb.masks import generator
from heedful.perturb.rounds import Plan, Rounds, Sampled, Samples, sample
from heedful.perturb.size_law import KnownLaw
from heedful.perturb.stopping import Pairs, Until, by_moments
from heedful.perturb.sweep import Sweep

_SPARE = 4
"""Columns that no unit uses, which show the size of errors: with 4, intervals are 1.4 times as wide as with many."""


@final
@dataclass(frozen=True)
class BanzhafSampled(CertifiedExplainer):
    """Banzhaf values estimated from few, well-chosen masks, for any model.

    φ_j = E[f(S ∪ j) − f(S)], every set S of the other units equally likely (Banzhaf, 1965). They are the coefficients
    of the linear surrogate with the least squared error over all masks (Hammer & Holzman, 1992), so they predict f on
    other masks best. Masks are rows of a Hadamard matrix and their complements (perturb/folded.py): 24 are enough for
    12 units, 64 nearly reach the best score that a linear surrogate can have.

    If there are at most `n_samples` masks, the model is evaluated on each and the scores are exact. About 2d masks are
    enough for d units; if half of them is d exactly, there are scores without intervals. With fewer, from 34 on, and
    for "signs" and "top", masks are random pairs of complements and the matrix of the normal equations is known
    (perturb/moments.py). `n_samples="auto"` stops when all half-widths are below `tolerance`. `until="signs"` stops
    when the signs of the `strongest` units are certain at `confidence`, "top" when it is certain which units these are,
    up to ties within `tolerance`; both ignore `n_samples`. All stop after `budget` masks.
    """

    name: ClassVar[str] = "banzhaf-sampled"
    group: ClassVar[Group] = "Shapley values"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "joint"
    joint_rank: ClassVar[int | None] = 7
    summary_group: ClassVar[tuple[str, int] | None] = ("shapley", 5)

    n_samples: Samples = 5000
    seed: int = 0
    absence: Absence = "replace"
    tolerance: float = 0.02
    budget: int = 100_000
    until: Until = "width"
    strongest: int = 5
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_absence(self.absence)
        self._plan(1).check()
        self.goal.check(self.name)

    def _plan(self, n_units: int) -> Plan:
        # Half a mask less, so that rounding up gives exactly the masks of that order.
        per_unit = (2 * smallest_order(n_units) - 0.5) / n_units
        return Plan(self.name, self.samples, per_unit, self.tolerance, self.budget)

    def n_masks(self, n_units: int) -> MaskCount:
        return self._plan(n_units).n_masks

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        document, sweep = question.documents[index], Sweep(question, index, self.unit, self.absence)
        n_units, rng = sweep.n_units, generator(self.seed, document)
        plan = self._plan(n_units)
        if self.goal.needs_moments(plan, n_units, free=True):
            pairs = Pairs(KnownLaw.banzhaf(n_units), sweep, rng)
            result = by_moments(question, index, self.unit, self.samples, self.goal, pairs, efficient=False)
        else:
            result = self._by_blocks(self.goal.listing(plan, n_units), sweep, rng)
        line, facts, notes = result.line, result.facts, (*result.notes, *sweep.notes)
        if self.goal.lists(plan, n_units):
            sentence, more = self.goal.exact(line.coefficients, document.units(self.unit))
            facts, notes = {**facts, **more}, (*notes, Note(sentence, "reached"))
        error = line.half_widths if np.isfinite(line.half_widths).all() else None
        if error is None:
            needed = 2 * smallest_order(n_units + _SPARE)
            few = f"{sweep.n_masks} masks are too few for intervals; {needed} are enough."
            notes = (*notes, Note(few, "few-samples"))
        return self.explanation(question, index, line.coefficients, error, facts).noted(notes, sweep.samples)

    def _by_blocks(self, plan: Plan, sweep: Sweep, rng: np.random.Generator) -> Sampled:
        """Blocks of masks, each unbiased: one, or one a round if their number is "auto"."""
        first_round = plan.first_round(sweep.n_units, self.unit)
        return sample(plan, first_round, Rounds(lambda n: folded_draws(sweep.n_units, n, rng), sweep, fit_banzhaf))
