"""How far the scores are from saying what many random removals do."""

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
    """The squared error of the scores as a prediction of what removals do.

        E_S [ (Σ_{i ∈ S} φ_i − (f(x) − f(x without S)))² ]                                     (Yeh et al., 2019, Eq. 1)

    with S uniform among the sets of a size that is uniform on 1 … d − 1, the same sets for every method. `scaling`:
    "none" is the published form; "optimal" multiplies the scores by the number that suits them best, as the authors
    advise for methods without a scale; "relative", the default, divides that by E[(f(x) − f(x without S))²]: 0 is
    perfect and 1 as good as no explanation. There the number is not negative: wrong signs are no matter of scale.
    """

    name: ClassVar[str] = "infidelity"
    question: ClassVar[str] = "Do its numbers add up to what removals do?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Yeh et al., 2019, arXiv:1901.09392"
    not_for: ClassVar[str] = "methods without a sign; models whose words act only together, which no sum describes."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset({"sign"})

    absence: Absence = "replace"
    n_sets: int = 50
    scaling: Scaling = "relative"
    seed: int = 0

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if self.n_sets < 2:
            raise BadInput(f"infidelity needs at least 2 sets; n_sets is {self.n_sets}.")

    def measure(self, evaluation: Evaluation) -> float:
        n_units = len(evaluation.scores)
        if n_units < 2:
            raise Unsupported("infidelity needs at least 2 units; the text has 1.")
        chance = generator(self.seed, evaluation.explanation.document)
        sizes = chance.integers(1, n_units, size=self.n_sets)
        gone = chance.random((self.n_sets, n_units)).argsort(axis=1).argsort(axis=1) < sizes[:, None]
        lost = evaluation.answers.whole(self.absence) - evaluation.answers(~gone, self.absence)
        said = gone @ evaluation.scores
        if self.scaling != "none":
            best = float(lost @ said) / max(float(said @ said), 1e-300)
            said = said * (max(best, 0.0) if self.scaling == "relative" else best)
        error, spread = float(((said - lost) ** 2).mean()), float((lost**2).mean())
        if self.scaling != "relative":
            return error
        if spread == 0:
            raise Unsupported("infidelity is not known where no removal moves the output.")
        return error / spread
