"""Squared error of the scores as a prediction of random removals."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.perturb.masks import generator

Scaling = Literal["none", "optimal", "relative"]


@final
@dataclass(frozen=True)
class Infidelity(Metric):
    """Squared error of summed scores as a prediction of random removals.

        E_S [ (Σ_{i ∈ S} φ_i − (f(x) − f(x without S)))² ]                                     (Yeh et al., 2019, Eq. 1)

    with the size of S uniform on 1 … d − 1 and S uniform among sets of that size, the same sets for every method.
    `scaling`: "none" is the published form; "optimal" multiplies the scores by the factor with the least error, as the
    authors advise for methods without a scale; "relative", the default, divides that by E[(f(x) − f(x without S))²]: 0
    is perfect and 1 no better than no explanation. Its factor is at least 0, because wrong signs are errors.
    """

    name: ClassVar[str] = "infidelity"
    question: ClassVar[str] = "Do the scores of removed units add up to the change of the output?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Yeh et al., 2019, arXiv:1901.09392"
    not_for: ClassVar[str] = "unsigned methods; models with strong interactions, which no sum describes."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset({"sign"})

    absence: Absence = "replace"
    n_sets: int = 50
    scaling: Scaling = "relative"
    seed: int = 0

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if self.n_sets < 2:
            raise BadInput(f"needs n_sets ≥ 2; {self.n_sets} was given.", self.name)

    def measure(self, evaluation: Evaluation) -> float:
        n_units = len(evaluation.scores)
        if n_units < 2:
            raise Unsupported("needs at least 2 units; the text has 1.", self.name)
        rng = generator(self.seed, evaluation.explanation.document)
        sizes = rng.integers(1, n_units, size=self.n_sets)
        removed = rng.random((self.n_sets, n_units)).argsort(axis=1).argsort(axis=1) < sizes[:, None]
        losses = evaluation.values.whole(self.absence) - evaluation.values(~removed, self.absence)
        predicted = removed @ evaluation.scores
        if self.scaling != "none":
            best = float(losses @ predicted) / max(float(predicted @ predicted), 1e-300)
            predicted = predicted * (max(best, 0.0) if self.scaling == "relative" else best)
        error, spread = float(((predicted - losses) ** 2).mean()), float((losses**2).mean())
        if self.scaling != "relative":
            return error
        if spread == 0:
            raise Unsupported("is undefined: no removal changes the output.", self.name)
        return error / spread
