"""Similarity of the explanations before and after the weights are randomised."""

from dataclasses import dataclass
from math import isnan
from typing import ClassVar, final

import numpy as np

from heedful.errors import Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.models.altered import scrambled
from heedful.statistics.correlation import spearman


@final
@dataclass(frozen=True)
class Randomisation(Metric):
    """Similarity to the explanation of the same model with randomised weights.

    max(0, ρ) with Spearman's ρ of |scores|, for signed and unsigned methods alike: 1 means that the explanation does
    not depend on what the model has learnt, 0 that it has changed completely. Both explanations have the same seed.
    Equal scores on the randomised model count as 0.

    Adebayo et al., 2018, Section 3.1. Differs from the source: all weights at once, permuted instead of redrawn.
    """

    name: ClassVar[str] = "randomisation"
    question: ClassVar[str] = "Does the explanation change when the weights are randomised?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Adebayo et al., 2018, arXiv:1810.03292"
    not_for: ClassVar[str] = "ranking good methods: small values are noise, more so for short texts."
    needs: ClassVar[frozenset[Offer]] = frozenset()
    wants: ClassVar[frozenset[Want]] = frozenset({"again"})
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    seed: int = 0

    def measure(self, evaluation: Evaluation) -> float:
        sizes = np.abs(evaluation.scores)
        if sizes.min() == sizes.max():
            raise Unsupported("all scores are equal, so there is no ranking to compare.", self.name, ": ")
        name = f"scrambled {self.seed}"
        if name not in evaluation.altered_models:
            evaluation.altered_models[name] = scrambled(evaluation.question.model, self.seed)
        rho = spearman(sizes, np.abs(evaluation.rerun(model=evaluation.altered_models[name]).scores))
        return 0.0 if isnan(rho) else max(0.0, rho)
