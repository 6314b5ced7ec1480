"""Whether equal models get equal explanations."""

from dataclasses import dataclass
from typing import ClassVar, final

from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer


@final
@dataclass(frozen=True)
class ImplementationInvariance(Metric):
    """How far the explanation moves on an equal model that is written differently.

    ‖φ(f, x)/‖φ(f, x)‖ − φ(f′, x)/‖φ(f′, x)‖‖ with f = f′: 0 to 2. The twin's explanation has another seed, since two
    explanations of one model may differ too: what is left to chance is not well defined by the model.

    Sundararajan et al., 2017, Section 2.2. Differs from the source: a degree, not an axiom; f and f′ are equal on
    texts, and may measure their embeddings in other units.
    """

    name: ClassVar[str] = "implementation-invariance"
    question: ClassVar[str] = "Do two equal models get the same explanation?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Sundararajan et al., 2017, arXiv:1703.01365"
    not_for: ClassVar[str] = "faithfulness, nor for claiming invariance in general: one twin of many is tried."
    needs: ClassVar[frozenset[Offer]] = frozenset()
    wants: ClassVar[frozenset[Want]] = frozenset({"again", "twin"})
    default: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 2.0)

    def measure(self, evaluation: Evaluation) -> float:
        return evaluation.distance(evaluation.rerun_with_seed(1, evaluation.twin))
