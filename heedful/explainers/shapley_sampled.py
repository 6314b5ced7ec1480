"""Shapley values from sampled masks, for every model, with an interval on each."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.explainers import CertifiedExplainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.forecast import MaskCount
from heedful.perturb.masks import Design, Draws, Law, generator, spread_draws
from heedful.perturb.rounds import Plan, Rounds, Sampled, Samples, WalkRounds, sample
from heedful.perturb.size_law import KnownLaw
from heedful.perturb.stopping import Pairs, Until, by_moments
from heedful.perturb.surrogate import fit_shapley
from heedful.perturb.sweep import Sweep


@final
@dataclass(frozen=True)
class ShapleySampled(CertifiedExplainer):
    """Shapley values estimated from sampled masks, for any model.

    `design="walks"` adds units one by one in random orders and averages what each adds (Castro, Gómez & Tejada, 2009);
    every order is also used in reverse, and each unit's position is spread evenly over the orders. The other designs
    fit a linear surrogate with the Shapley kernel (KernelSHAP: Lundberg & Lee, 2017, arXiv:1705.07874; pairs: Covert &
    Lee, 2021, arXiv:2012.01536), which is less accurate on long texts. The scores always sum to f(x) − f(empty). If
    there are few subsets, the model is evaluated on each once and the scores are exact. `n_samples="auto"` stops when
    every 95 % half-width is below `tolerance`. `until="signs"` stops when the signs of the `strongest` units are
    certain at `confidence`, "top" when it is certain which units these are, up to ties within `tolerance`; both ignore
    `n_samples`. All stop after `budget` masks. For "signs" and "top", and if samples are too few for walks, the matrix
    of the normal equations is computed exactly instead of estimated (perturb/moments.py).
    """

    name: ClassVar[str] = "shapley-sampled"
    group: ClassVar[Group] = "Shapley values"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "joint"
    joint_rank: ClassVar[int | None] = 4
    summary_group: ClassVar[tuple[str, int] | None] = ("shapley", 2)

    n_samples: Samples = 5000
    seed: int = 0
    absence: Absence = "replace"
    design: Literal["walks", "independent", "paired", "stratified"] = "walks"
    tolerance: float = 0.02
    budget: int = 100_000
    until: Until = "width"
    strongest: int = 5
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_absence(self.absence)
        self._plan(2.5).check()
        self.goal.check(self.name)

    def _plan(self, per_unit: float) -> Plan:
        memory = 12.0 if self.design == "walks" else 50.0
        return Plan(self.name, self.samples, per_unit, self.tolerance, self.budget, memory)

    def n_masks(self, n_units: int) -> MaskCount:  # noqa: ARG002
        return self._plan(2.5).n_masks

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        document, sweep = question.documents[index], Sweep(question, index, self.unit, self.absence)
        n_units = document.n_units(self.unit)
        if n_units == 1:
            keep = np.array([[True], [False]])
            whole, empty = sweep(keep)
            return self.explanation(question, index, np.array([whole - empty]), np.zeros(1), {"masks": 2})
        # Fewer than five walks in both directions give no estimate of their variance.
        plan = self._plan(10.0 if self.design == "walks" else 2.5)
        rng = generator(self.seed, document)
        free = "pooling" in question.model.offers or self.design != "walks"
        if self.goal.needs_moments(plan, n_units, free):
            pairs = Pairs(KnownLaw.shapley(n_units), sweep, rng)
            result = by_moments(question, index, self.unit, self.samples, self.goal, pairs, efficient=True)
        else:
            result = self._by_sampling(self.goal.listing(plan, n_units), sweep, rng)
        surrogate = result.line
        facts, notes = result.facts, (*result.notes, *sweep.notes)
        if self.goal.lists(plan, n_units):
            sentence, more = self.goal.exact(surrogate.coefficients, document.units(self.unit))
            facts, notes = {**facts, **more}, (*notes, Note(sentence, "reached"))
        explanation = self.explanation(question, index, surrogate.coefficients, surrogate.half_widths, facts)
        return explanation.noted(notes, sweep.samples)

    def _by_sampling(self, plan: Plan, sweep: Sweep, rng: np.random.Generator) -> Sampled:
        """Walks, or a linear surrogate with the Shapley kernel if the design says so or there are few subsets."""
        n_units, first_round = sweep.n_units, plan.first_round(sweep.n_units, self.unit)
        every = self.goal.lists(self._plan(plan.a_unit), n_units)
        listed = Law.shapley(n_units, first_round).listed() if every or self.design in ("walks", "stratified") else 0
        if self.design == "walks" and 2 * listed + 1 < n_units:
            return sample(plan, first_round, WalkRounds(rng, sweep))

        def draw(n: int) -> Draws:
            design: Design = "stratified" if self.design == "walks" else self.design
            return spread_draws(Law.shapley(n_units, n), listed, n, design, rng)

        return sample(plan, first_round, Rounds(draw, sweep, fit_shapley))
