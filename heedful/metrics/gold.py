"""Whether an explanation finds the words that a model is known to use."""

from dataclasses import dataclass
from typing import ClassVar, final

from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer

_NEEDS: frozenset[Offer] = frozenset()
_WANTS: frozenset[Want] = frozenset({"gold"})
_SOURCE = "Ribeiro et al., 2016, arXiv:1602.04938, Section 5.2"
_NOT_FOR = "models whose features are not known: what a deaf model is left with says nothing of the whole one's."


def _found(evaluation: Evaluation, metric: Metric, k: int | None) -> tuple[int, int, int]:
    """How many gold units there are, how many units are named, and how many gold ones among these."""
    assert evaluation.gold is not None
    n_gold, n_units = int(evaluation.gold.sum()), len(evaluation.scores)
    n_named = n_gold if k is None else k
    if n_gold == 0:
        raise Unsupported(f"{metric.name}: none of the words that the model uses is in this text.")
    if n_named >= n_units:
        raise Unsupported(
            f"{metric.name}: the text has {n_units} units and {n_named} are named, so none can be missed."
        )
    return n_gold, n_named, int(evaluation.gold[evaluation.strongest[:n_named]].sum())


@final
@dataclass(frozen=True)
class GoldRecall(Metric):
    """The share of the words a model is known to use among the k strongest.

    |G ∩ top k| / min(|G|, k), with k = 10 as in the source. Differs from the source: units are counted and not words,
    and where a text has more than k gold units all k can be right.
    """

    name: ClassVar[str] = "gold-recall"
    question: ClassVar[str] = "Does it find the words that the model is known to use?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    k: int = 10

    def measure(self, evaluation: Evaluation) -> float:
        if self.k < 1:
            raise BadInput(f"{self.name} needs k ≥ 1; {self.k} was given.")
        n_gold, n_named, n_right = _found(evaluation, self, self.k)
        return n_right / min(n_gold, n_named)


@final
@dataclass(frozen=True)
class GoldPrecision(Metric):
    """The share of words a model is known to use among as many of the strongest.

    |G ∩ top |G|| / |G|: R-precision, where precision and recall are one number.
    """

    name: ClassVar[str] = "gold-precision"
    question: ClassVar[str] = "Are the words that it names those that the model is known to use?"
    better: ClassVar[Better] = "higher"
    source: ClassVar[str] = _SOURCE
    not_for: ClassVar[str] = _NOT_FOR
    needs: ClassVar[frozenset[Offer]] = _NEEDS
    wants: ClassVar[frozenset[Want]] = _WANTS
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def measure(self, evaluation: Evaluation) -> float:
        n_gold, _, n_right = _found(evaluation, self, None)
        return n_right / n_gold
