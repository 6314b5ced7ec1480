"""Lemma D.5: the same probabilities given that one word is kept."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, final

from heedful.experiments import Experiment, ExperimentPart
from heedful.experiments.claim import Claim, Numbers
from heedful.experiments.mathematics.probability_formulas import (
    ProbabilityFormula,
    count_formulas,
    draw_formulas,
    formula_claims,
    formula_figure,
)
from heedful.experiments.workspace import Workspace

if TYPE_CHECKING:
    from heedful.experiments.figure import Figure

FORMULAS = (
    ProbabilityFormula(
        "P(a ∉ S | ℓ ∉ S)",
        "(n−1−s)/(n−1)",
        lambda kept: kept[0],
        lambda n, s: Fraction(n - 1 - s, n - 1),
        lambda kept: kept[2],
    ),
    ProbabilityFormula(
        "P(a ∈ S | ℓ ∉ S)",
        "s/(n−1)",
        lambda kept: ~kept[0],
        lambda n, s: Fraction(s, n - 1),
        lambda kept: kept[2],
    ),
    ProbabilityFormula(
        "P(a ∉ S, b ∉ S | ℓ ∉ S)",
        "(n−s−1)(n−s−2)/((n−1)(n−2))",
        lambda kept: kept[0] & kept[1],
        lambda n, s: Fraction((n - s - 1) * (n - s - 2), (n - 1) * (n - 2)),
        lambda kept: kept[2],
    ),
)


@final
@dataclass(frozen=True)
class LemmaD5(Experiment):
    """The three formulas of Eq. (38), by counting all sets and by drawing."""

    name: ClassVar[str] = "lemma-d5"
    part: ClassVar[ExperimentPart] = "mathematics"
    title: ClassVar[str] = "Lemma D.5: probabilities given that a word is kept"
    source: ClassVar[str] = "paper, Appendix D.2, Lemma D.5, Eq. (38)"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables counted, drawn."""
        most, n_draws = (7, 20_000) if workspace.quick else (9, 200_000)
        # With all n units removed none is kept, and there is nothing to condition on.
        return {
            "counted": workspace.step("counted", lambda: count_formulas(FORMULAS, range(3, most + 1), lambda n: n - 1)),
            "drawn": workspace.step("drawn", lambda: draw_formulas(FORMULAS, 20, 19, n_draws, workspace.seed)),
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return formula_claims(FORMULAS, numbers)

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure probabilities."""
        return {"probabilities": formula_figure(FORMULAS, numbers)}
