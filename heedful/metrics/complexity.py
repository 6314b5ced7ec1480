"""How much of a text an explanation needs."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.perturb.masks import counts_of, first

_SHARES = np.array([1, 5, *range(10, 101, 10)]) / 100
"""Those of sufficiency among them, so that the same masks serve both."""


@final
@dataclass(frozen=True)
class EffectiveComplexity(Metric):
    """The smallest share of strongest units that keeps the target near itself.

        k* = min { k : |f(x) − f(only the k strongest)| ≤ ε |f(x) − f(∅)| }               (Nguyen & Martinez, 2020, 2.5)

    as a share of the units; k is looked for among 1, 5, 10, 20, 30, … 100 %. Differs from the source: ε is relative to
    what the whole text does, and the bound must hold from k* on: with evidence on both sides f comes near itself by
    chance, and leaves again.
    """

    name: ClassVar[str] = "effective-complexity"
    question: ClassVar[str] = "How many of the units it names are enough?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Nguyen & Martinez, 2020, arXiv:2007.07584, metric 2.5"
    not_for: ClassVar[str] = "methods that are to rank all words: it sees the strongest only."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    absence: Absence = "replace"
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if not self.epsilon >= 0:
            raise BadInput(f"epsilon is a share of the output from 0; {self.epsilon} was given.")

    def measure(self, evaluation: Evaluation) -> float:
        counts = np.unique(counts_of(_SHARES, len(evaluation.scores)))
        whole, empty = evaluation.answers.whole(self.absence), evaluation.answers.empty(self.absence)
        if whole == empty:
            raise Unsupported(f"{self.name} is not known where the text as a whole moves nothing.")
        loss = np.abs(whole - evaluation.answers(first(evaluation.strongest, counts), self.absence))
        # The largest count is the whole text, whose loss is none, but for rounding.
        near = loss <= self.epsilon * abs(whole - empty)
        near[-1] = True
        from_there_on = np.logical_and.accumulate(near[::-1])[::-1]
        return float(counts[np.argmax(from_there_on)] / len(evaluation.scores))
