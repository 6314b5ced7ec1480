"""LIME for text (Ribeiro et al., 2016), Section 5.1, with an interval on every coefficient."""

from dataclasses import dataclass, replace
from math import ceil, inf
from typing import ClassVar, final

from heedful.document import Absence, check_absence
from heedful.errors import BadInput
from heedful.explainers import Explainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.masks import generator, lime_masks
from heedful.perturb.surrogate import fit, kernel
from heedful.perturb.sweep import sweep


@final
@dataclass(frozen=True)
class Lime(Explainer):
    """Weighted line through answers to thinned texts: LIME, Eqs. (15) and (16).

    Sizes, kernel, ridge and intercept are the official package's (0.2.0.1). `unit="type"` removes all occurrences of a
    word at once, the package's `bow=True`; "word" removes one at a time.

    Differs from the package: `absence="delete"`, what it does with `bow=True`, is not the default; "replace" puts the
    unknown token in a removed word's place, as the paper's text says. All units get a coefficient, none is selected.
    The words that the model reads of a long text, T_max − 1, are explained as if they were the text.
    """

    name: ClassVar[str] = "lime"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = True

    n_samples: int = 5000
    seed: int = 0
    absence: Absence = "replace"
    kernel_width: float = 25.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if self.n_samples < 10:
            raise BadInput(f"Lime needs at least 10 samples; n_samples is {self.n_samples}.")
        if self.n_samples > 10_000_000:
            raise BadInput(f"Lime takes at most 10,000,000 samples; n_samples is {self.n_samples:,}.")
        if not 0 < self.kernel_width < inf or not 0 <= self.ridge < inf:
            raise BadInput("Lime needs a finite kernel_width > 0 and a finite ridge ≥ 0.")

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        document = question.documents[index]
        n_units = document.n_units(self.unit)
        if n_units < 2:
            raise BadInput(f"Lime needs at least 2 {self.unit}s; the document has {n_units}.")
        if self.n_samples < 1.25 * n_units:
            needed = ceil(1.25 * n_units)
            raise BadInput(
                f"Lime needs at least {needed} samples for {n_units} {self.unit}s; n_samples is {self.n_samples}."
            )
        keep = lime_masks(n_units, self.n_samples, generator(self.seed, document))
        values = sweep(question.model, document, question.weights[index], self.unit, keep, self.absence)
        weights = kernel(keep, self.kernel_width)
        if weights.sum() ** 2 <= n_units / 2 * (weights @ weights):
            raise BadInput(f"With kernel_width {self.kernel_width:g} nearly all samples weigh nothing; widen it.")
        line = fit(keep, values, weights, self.ridge)
        facts = {
            "masks": self.n_samples,
            "effective_samples": line.effective_samples,
            "intercept": line.intercept,
            "r_squared": line.r_squared,
            "penalty_shift": line.penalty_shift,
        }
        found = self.explanation(question, index, line.coefficients, line.half_widths, facts)
        if line.penalty_shift <= line.half_widths.max():
            return found
        note = f"LIME's penalty moves a score by up to {line.penalty_shift:.2g}, which no interval counts; see ridge."
        return replace(found, document=replace(document, notes=(*document.notes, note)))
