"""The share of the strongest units that suffices to preserve the output."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.perturb.masks import counts_of, first

_SHARES = np.array([1, 5, *range(10, 101, 10)]) / 100
"""They include those of sufficiency, so that both use the same masks."""


@final
@dataclass(frozen=True)
class EffectiveComplexity(Metric):
    """Smallest share of the strongest units that preserves the output.

        k* = min { k : |f(x) − f(only the k strongest)| ≤ ε |f(x) − f(∅)| }               (Nguyen & Martinez, 2020, 2.5)

    as a share of the units, among 1, 5, 10, 20, 30, … 100 %. Differs from the source: ε is relative to the effect of
    the whole text, and the bound must hold for all larger shares too: with evidence for and against the target, f can
    equal f(x) by coincidence.
    """

    name: ClassVar[str] = "effective-complexity"
    question: ClassVar[str] = "How many of the strongest units are enough to preserve the output?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Nguyen & Martinez, 2020, arXiv:2007.07584, metric 2.5"
    not_for: ClassVar[str] = "judging the whole ranking: only the strongest units count."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    absence: Absence = "replace"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if not self.epsilon >= 0:
            raise BadInput(f"epsilon is {self.epsilon}; it must be 0 or larger.")

    def measure(self, evaluation: Evaluation) -> float:
        counts = np.unique(counts_of(_SHARES, len(evaluation.scores)))
        whole, empty = evaluation.values.whole(self.absence), evaluation.values.empty(self.absence)
        if whole == empty:
            raise Unsupported(f"{self.name} is undefined: removing the whole text does not change the output.")
        loss = np.abs(whole - evaluation.values(first(evaluation.strongest, counts), self.absence))
        # The largest count is the whole text, whose loss is zero up to rounding.
        near = loss <= self.epsilon * abs(whole - empty)
        near[-1] = True
        from_there_on = np.logical_and.accumulate(near[::-1])[::-1]
        return float(counts[np.argmax(from_there_on)] / len(evaluation.scores))
