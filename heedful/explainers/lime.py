"""LIME for text (Ribeiro et al., 2016), Section 5.1, with an interval on every coefficient."""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Float

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.document.units import plural
from heedful.errors import BadInput
from heedful.explainers import CertifiedExplainer, Group, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.forecast import MaskCount
from heedful.perturb.masks import Design, Draws, Law, generator, lime_draws, spread_draws
from heedful.perturb.rounds import Plan, Rounds, Sampled, Samples, sample
from heedful.perturb.size_law import KnownLaw
from heedful.perturb.stopping import Pairs, Until, by_moments
from heedful.perturb.surrogate import Surrogate, fit_lime, kernel
from heedful.perturb.sweep import Sweep

_NOMINAL = 5000
_POOR = 0.5
"""The R² below which a note says that the surrogate fits badly."""


@final
@dataclass(frozen=True)
class Lime(CertifiedExplainer):
    """LIME: weighted linear surrogate fitted to randomly masked texts, Eqs. (15)–(16).

    Sizes, kernel, ridge and intercept are those of the official package (0.2.0.1). `unit="type"` removes all
    occurrences of a word (the package's `bow=True`), "word" removes one. `n_samples="auto"` stops when every 95 %
    half-width is below `tolerance`. `until="signs"` stops when the signs of the `strongest` units are certain at
    `confidence`, "top" when it is certain which units these are, up to ties within `tolerance`; both ignore
    `n_samples`. All stop after `budget` masks. `absence` is replace, replace:WORD, delete, mask, mean or zero.
    `intercept="penalised"` puts the ridge on the intercept too, as Eq. (16) is printed.

    Differs from the package: its `absence="delete"` (with `bow=True`) is not the default; "replace" puts the unknown
    token in the place of a removed word, as the paper says. All units get a coefficient; none is selected.
    `design="independent"` samples as the package does. The default samples every mask with its complement, spreads
    sizes evenly, and evaluates every mask once if there are few: the same coefficients with half the variance or none.
    If masks are too few for a regression, and for "signs" and "top", the matrix of the normal equations is computed
    exactly instead of estimated (perturb/moments.py); with "auto", scores are the expected ones of 5,000 samples. If
    a text is longer than the model reads (T_max − 1 words), the words that it reads are explained as the whole text.
    """

    name: ClassVar[str] = "lime"
    group: ClassVar[Group] = "surrogates"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = True
    removal: ClassVar[Literal["single", "joint"] | None] = "joint"
    joint_rank: ClassVar[int | None] = 3
    summary_group: ClassVar[tuple[str, int] | None] = ("lime", 3)

    n_samples: Samples = 5000
    seed: int = 0
    absence: Absence = "replace"
    design: Design = "stratified"
    kernel_width: float = 25.0
    ridge: float = 1.0
    intercept: Literal["free", "penalised"] = "free"
    tolerance: float = 0.02
    budget: int = 100_000
    until: Until = "width"
    strongest: int = 5
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_absence(self.absence)
        self._plan.check()
        self.goal.check(self.name)
        if not 1e-6 <= self.kernel_width <= 1e6 or not 0 <= self.ridge < inf:
            raise BadInput(f"{self.name} needs a kernel_width from 1e-6 to 1e6 and a finite ridge ≥ 0.")

    @cached_property
    def _plan(self) -> Plan:
        # A mask and its complement give one independent equation, not two.
        per_unit = 1.25 if self.design == "independent" else 2.5
        return Plan(self.name, self.samples, per_unit, self.tolerance, self.budget)

    @property
    def _on_intercept(self) -> float:
        return self.ridge if self.intercept == "penalised" else 0.0

    def n_masks(self, n_units: int) -> MaskCount:  # noqa: ARG002
        return self._plan.n_masks

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        document, sweep = question.documents[index], Sweep(question, index, self.unit, self.absence)
        n_units = document.n_units(self.unit)
        if n_units < 2:
            raise BadInput(f"needs at least 2 {plural(self.unit)}; the document has {n_units}.", self.name)
        rng = generator(self.seed, document)
        free = "pooling" in question.model.offers or self.design != "stratified"
        if self.goal.needs_moments(self._plan, n_units, free):
            n_samples = _NOMINAL if self.samples == "auto" else self.samples
            law = KnownLaw.lime(n_units, n_samples, self.kernel_width, self.ridge, self._on_intercept)
            if law.mass[1:-1].sum() < 1e-3 * n_samples:
                raise BadInput(f"With kernel_width {self.kernel_width:g} nearly all samples have no weight; raise it.")
            pairs = Pairs(law, sweep, rng)
            result = by_moments(question, index, self.unit, self.samples, self.goal, pairs, efficient=False)
        else:
            result = self._by_regression(sweep, rng)
        surrogate, notes = result.line, (*result.notes, *sweep.notes)
        if surrogate.penalty_shift > max(surrogate.half_widths.max(), 1e-3 * np.abs(surrogate.coefficients).max()):
            shift = (
                f"The ridge penalty shifts scores by up to {surrogate.penalty_shift:.2g}; intervals do not include it."
            )
            notes = (*notes, Note(shift, "inexact"))
        if surrogate.r_squared < _POOR:
            share = f"{max(0.0, surrogate.r_squared):.0%}".replace("%", " %")
            poor = f"The linear surrogate explains {share} of the variance over masks, so it says little about f."
            notes = (*notes, Note(poor, "inexact"))
        facts = {**result.facts, "penalty_shift": surrogate.penalty_shift}
        if self.goal.lists(self._plan, n_units):
            sentence, more = self.goal.exact(surrogate.coefficients, document.units(self.unit))
            facts, notes = {**facts, **more}, (*notes, Note(sentence, "reached"))
        explanation = self.explanation(question, index, surrogate.coefficients, surrogate.half_widths, facts)
        return explanation.noted(notes, sweep.samples)

    def _by_regression(self, sweep: Sweep, rng: np.random.Generator) -> Sampled:
        n_units, plan = sweep.n_units, self.goal.listing(self._plan, sweep.n_units)
        first_round = plan.first_round(n_units, self.unit)
        every = self.goal.lists(self._plan, n_units)
        listed = Law.lime(n_units, first_round).listed() if every or self.design == "stratified" else 0

        def draw(n: int) -> Draws:
            if self.design == "independent" and not every:
                return lime_draws(n_units, n, rng)
            return spread_draws(Law.lime(n_units, n), listed, n, self.design, rng)

        return sample(plan, first_round, Rounds(draw, sweep, self._fit))

    def _fit(self, draws: Draws, values: Float[np.ndarray, "mask"]) -> Surrogate:
        weights = kernel(draws.keep, self.kernel_width)
        mass = draws.mass * weights
        if mass.sum() ** 2 <= draws.keep.shape[1] / 2 * (mass @ mass):
            raise BadInput(f"With kernel_width {self.kernel_width:g} nearly all samples have no weight; raise it.")
        return fit_lime(draws, values, weights, self.ridge, self._on_intercept)
