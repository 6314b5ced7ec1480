"""How many of the words that the model is known to use are among the strongest units."""

from dataclasses import dataclass
from typing import ClassVar, final

from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Use, Want
from heedful.models import Offer

_NEEDS: frozenset[Offer] = frozenset()
_WANTS: frozenset[Want] = frozenset({"gold"})
_USES: tuple[Use, ...] = ("find the known words",)
_SOURCE = "Ribeiro et al., 2016, arXiv:1602.04938, Section 5.2; lecture, chapter 10.2"
_NOT_FOR = "models whose features are unknown: the words of a restricted copy say nothing about the whole model."


def _counts(evaluation: Evaluation, metric: Metric, k: int | None) -> tuple[int, int]:
    """The number of gold units, and of those among the selected."""
    assert evaluation.gold is not None
    n_gold, n_units = int(evaluation.gold.sum()), len(evaluation.scores)
    n_named = n_gold if k is None else k
    if n_gold == 0:
        raise Unsupported("the text contains none of the words that the model uses.", metric.name, ": ")
    if n_named >= n_units:
        raise Unsupported(
            f"the text has {n_units} units and {n_named} are selected; select fewer than all.",
            metric.name,
            ": ",
        )
    return n_gold, int(evaluation.gold[evaluation.strongest[:n_named]].sum())


@final
@dataclass(frozen=True)
class GoldRecall(Metric):
    """Recall of the words that the model is known to use among the k strongest.

    TP / (TP + FN) = |G ∩ G′| / |G|: G the gold units, G′ the k strongest, k = 10 as in the source, whose models use at
    most 10 words. A text with more than k gold units cannot reach 1. Features are units: with unit `type` they are
    words, as in the source.
    """

    name: ClassVar[str] = "gold-recall"
    question: ClassVar[str] = "Are the words that the model is known to use among the strongest?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    uses: ClassVar[tuple[Use, ...]] = _USES

    k: int = 10

    def measure(self, evaluation: Evaluation) -> float:
        if self.k < 1:
            raise BadInput(f"needs k ≥ 1; {self.k} was given.", self.name)
        n_gold, n_right = _counts(evaluation, self, self.k)
        return n_right / n_gold


@final
@dataclass(frozen=True)
class GoldPrecision(Metric):
    """R-precision: precision of the strongest units, as many as there are gold units.

    |G ∩ top |G|| / |G|, with G the units of words that the model is known to use; precision and recall are equal.
    """

    name: ClassVar[str] = "gold-precision"
    question: ClassVar[str] = "Are the strongest words those that the model is known to use?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    uses: ClassVar[tuple[Use, ...]] = _USES

    def measure(self, evaluation: Evaluation) -> float:
        n_gold, n_right = _counts(evaluation, self, None)
        return n_right / n_gold
