"""The number of strongest units that suffices to preserve the output."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from jaxtyping import Bool, Int

from heedful.document import Absence, check_absence
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.perturb.expected_loss import LOSSES, check_loss
from heedful.perturb.masks import first

_FIRST_BLOCK = 8
"""So many masks are evaluated at first, then twice as many, until k* is among them."""


@final
@dataclass(frozen=True)
class EffectiveComplexity(Metric):
    """Smallest number of the strongest units that preserves the output, k*.

        k* = min { k ∈ [d] : E[ℓ(y*, f) | only the k strongest are kept] ≤ ε }            (Nguyen & Martinez, 2020, 2.5)

    Every k is tried. y* is f(x), the expectation is over one replacement, `absence`. The source leaves ε open; with
    `bound="relative"` it is a share of the loss of the empty text, with "absolute" a loss.

    Two settings are ours. With evidence for and against the target, f can equal f(x) by coincidence:
    `rule="lasting"` demands that the bound hold for all larger k too. `count="share"` divides by d.
    """

    name: ClassVar[str] = "effective-complexity"
    question: ClassVar[str] = "How many of the strongest units are enough to preserve the output?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Nguyen & Martinez, 2020, arXiv:2007.07584, metric 2.5; lecture, chapter 10.2"
    not_for: ClassVar[str] = "judging the whole ranking: only the strongest units count."
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    wants: ClassVar[frozenset[Want]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    absence: Absence = "replace"
    epsilon: float = 0.1
    loss: str = "absolute"
    bound: Literal["relative", "absolute"] = "relative"
    rule: Literal["first", "lasting"] = "first"
    count: Literal["units", "share"] = "units"

    def __post_init__(self) -> None:
        check_absence(self.absence)
        check_loss(self.loss)
        if not self.epsilon >= 0:
            raise BadInput(f"epsilon is {self.epsilon}; it must be 0 or larger.")

    def measure(self, evaluation: Evaluation) -> float:
        chosen = np.array([], dtype=bool)
        for within in self._within(evaluation):
            chosen = np.concatenate([chosen, within])
            if self.rule == "first" and within.any():
                break
        if self.rule == "lasting":
            chosen = np.logical_and.accumulate(chosen[::-1])[::-1]
        if not chosen.any():
            raise Unsupported(f"no number of units has a loss of at most epsilon, {self.epsilon}.", self.name, ": ")
        n_units = int(np.argmax(chosen)) + 1
        return n_units / len(evaluation.scores) if self.count == "share" else float(n_units)

    def _within(self, evaluation: Evaluation) -> Iterator[Bool[np.ndarray, "step"]]:
        """Whether the loss is within ε for k = 1, 2, …, in blocks."""
        loss, d = LOSSES[self.loss], len(evaluation.scores)
        whole, empty = (value(self.absence, loss.scale) for value in (evaluation.values.whole, evaluation.values.empty))
        if whole == empty:
            raise Unsupported("is undefined: removing the whole text does not change the output.", self.name)
        allowed = self.epsilon
        if self.bound == "relative":
            allowed *= float(loss.of(np.array(whole - empty), whole))
        for counts in _blocks(d):
            kept = evaluation.values(first(evaluation.strongest, counts), self.absence, loss.scale)
            # With all units the output is f(x); rounding must not say otherwise.
            yield loss.of(np.where(counts == d, 0.0, whole - kept), whole) <= allowed


def _blocks(n_units: int) -> Iterator[Int[np.ndarray, "step"]]:
    start, size = 1, _FIRST_BLOCK
    while start <= n_units:
        yield np.arange(start, min(start + size, n_units + 1))
        start, size = start + size, 2 * size
