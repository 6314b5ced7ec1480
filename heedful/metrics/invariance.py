"""Distance between the explanations of two equivalent models with different implementations."""

from dataclasses import dataclass
from typing import ClassVar, final

from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer


@final
@dataclass(frozen=True)
class ImplementationInvariance(Metric):
    """Change of the explanation on an equivalent model with another implementation.

    ‖φ(f, x)/‖φ(f, x)‖ − φ(f′, x)/‖φ(f′, x)‖‖ with f = f′: 0 to 2. The explanation of f′ uses another seed, so that
    sampling noise counts as well.

    Sundararajan et al., 2017, Section 2.2. Differs from the source: it is measured by degree instead of as an axiom; f
    and f′ are equal on texts, and their embeddings have different coordinates. models/twins/twin.py makes f′.
    """

    name: ClassVar[str] = "implementation-invariance"
    question: ClassVar[str] = "Do two equivalent models have the same explanation?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Sundararajan et al., 2017, arXiv:1703.01365"
    not_for: ClassVar[str] = "faithfulness; general claims of invariance: only one equivalent model is tested."
    needs: ClassVar[frozenset[Offer]] = frozenset()
    wants: ClassVar[frozenset[Want]] = frozenset({"again", "twin"})
    bounds: ClassVar[tuple[float, float]] = (0.0, 2.0)

    def measure(self, evaluation: Evaluation) -> float:
        return evaluation.distance(evaluation.rerun_with_seed(1, evaluation.twin))
