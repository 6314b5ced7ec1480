"""Lemma D.4: the probability that a random set of s words does not contain one, two or three given words."""

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
    ProbabilityFormula("P(a ∉ S)", "(n−s)/n", lambda kept: kept[0], lambda n, s: Fraction(n - s, n)),
    ProbabilityFormula(
        "P(a ∉ S, b ∉ S)",
        "(n−s)(n−1−s)/(n(n−1))",
        lambda kept: kept[0] & kept[1],
        lambda n, s: Fraction((n - s) * (n - 1 - s), n * (n - 1)),
    ),
    ProbabilityFormula(
        "P(a ∉ S, b ∈ S)",
        "s(n−s)/(n(n−1))",
        lambda kept: kept[0] & ~kept[1],
        lambda n, s: Fraction(s * (n - s), n * (n - 1)),
    ),
    ProbabilityFormula(
        "P(a ∉ S, b ∉ S, c ∉ S)",
        "(n−s)(n−s−1)(n−s−2)/(n(n−1)(n−2))",
        lambda kept: kept[0] & kept[1] & kept[2],
        lambda n, s: Fraction((n - s) * (n - s - 1) * (n - s - 2), n * (n - 1) * (n - 2)),
    ),
    ProbabilityFormula(
        "P(a ∉ S, b ∈ S, c ∉ S)",
        "s(n−s−1)(n−s)/(n(n−1)(n−2))",
        lambda kept: kept[0] & ~kept[1] & kept[2],
        lambda n, s: Fraction(s * (n - s - 1) * (n - s), n * (n - 1) * (n - 2)),
    ),
)


@final
@dataclass(frozen=True)
class LemmaD4(Experiment):
    """The five formulas of Eq. (37), by counting all sets and by drawing."""

    name: ClassVar[str] = "lemma-d4"
    part: ClassVar[ExperimentPart] = "mathematics"
    title: ClassVar[str] = "Lemma D.4: probabilities of a random set"
    source: ClassVar[str] = "paper, Appendix D.2, Lemma D.4, Eq. (37)"

    def measure(self, workspace: Workspace) -> Numbers:
        """Measures the tables counted, drawn."""
        most, n_draws = (7, 20_000) if workspace.quick else (9, 200_000)
        return {
            "counted": workspace.step("counted", lambda: count_formulas(FORMULAS, range(3, most + 1), lambda n: n)),
            "drawn": workspace.step("drawn", lambda: draw_formulas(FORMULAS, 20, 20, n_draws, workspace.seed)),
        }

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Compares the tables with what the source says."""
        return formula_claims(FORMULAS, numbers)

    def draw(self, numbers: Numbers) -> "dict[str, Figure]":
        """Draws the figure probabilities."""
        return {"probabilities": formula_figure(FORMULAS, numbers)}
