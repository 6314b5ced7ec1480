"""FRED: the smallest set of units whose removal lowers the output, on average over masked texts."""

from dataclasses import dataclass
from math import ceil
from typing import ClassVar, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.errors import BadInput
from heedful.explainers import Group, MaskingExplainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.forecast import MaskCount
from heedful.perturb.masks import generator
from heedful.perturb.sweep import Interrupted, Sweep
from heedful.statistics.intervals import NORMAL_97_5, mean_of_draws

_FEWEST = 8
"""Masks without a set of units, below which the mean over them is too noisy to choose the set by."""


@final
class _Drop(NamedTuple):
    """A set of units, and how far the output falls without it: Δ_c = E f − E[f | c removed]."""

    units: tuple[int, ...]
    value: float


@final
@dataclass(frozen=True)
class Fred(MaskingExplainer):
    """FRED: drop of the output without each unit, and the smallest set that lowers it.

    Every unit is removed with probability ½. A unit's score is Δ_j = E f − E[f | j removed], which is half of its
    Banzhaf value; a note names the smallest set c with Δ_c ≥ `epsilon` · |f(x)|, of at most `max_size` units, found by
    a beam search. The set is chosen on three quarters of the masks; its drop and interval come from the others, so the
    choice does not flatter it. If there are at most `n_samples` masks, all are evaluated and everything is exact.
    Best with scale="probability", as in the source: there f is a probability.

    Reference: Lopardo, Precioso & Garreau, 2023, arXiv:2311.01605; 3067 masks contain one without any given 10 units
    with probability 0.95. Differs from the source: intervals, and a set's drop on fresh masks; no sampling of words of
    the same part of speech, no counterfactual texts.
    """

    name: ClassVar[str] = "fred"
    group: ClassVar[Group] = "removal"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = True

    epsilon: float = 0.15
    max_size: int = 10
    beam_width: int = 4
    n_samples: int = 3067
    seed: int = 0
    absence: Absence = "replace"

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if not 0 < self.epsilon <= 1 or not 1 <= self.max_size <= 100 or not 1 <= self.beam_width <= 100:
            raise BadInput(f"{self.name} takes an epsilon of 0 to 1, a max_size and a beam_width of 1 to 100.")
        if not 16 <= self.n_samples <= 1_000_000:
            raise BadInput(f"{self.name} takes 16 to 1,000,000 samples; n_samples is {self.n_samples:,}.")

    def n_masks(self, n_units: int) -> MaskCount:  # noqa: ARG002
        return MaskCount(self.n_samples + 1, "n_samples")

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        document, sweep = question.documents[index], Sweep(question, index, self.unit, self.absence)
        d, rng = sweep.n_units, generator(self.seed, document)
        listed = d < 20 and 2**d <= self.n_samples
        sweep.expected = 2**d if listed else self.n_samples + 1
        n = ceil(0.75 * self.n_samples)
        keep = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1 if listed else rng.random((n, d)) < 0.5
        try:
            whole, values = float(sweep(np.ones((1, d), dtype=bool))[0]), sweep(keep)
            scores, error = _singles(keep, values, listed)
            best = self._search(keep, values, self.epsilon * abs(whole), 1 if listed else _FEWEST)
            if listed:
                drop, width = best.value, 0.0
            else:
                drop, width = _fresh(sweep, best.units, (self.n_samples - n) // 2, rng)
        except Interrupted:
            raise KeyboardInterrupt from None
        names = ", ".join(f'"{document.units(self.unit)[unit]}"' for unit in best.units)
        enough = drop - width >= self.epsilon * abs(whole) - 1e-12
        way = "lower" if drop >= 0 else "higher"
        start = f"Without {names} the output is {way} by {abs(drop):.3g}" + (f" ± {width:.2g}" if width else "")
        goal = f"{self.epsilon:.0%} of f(x) = {whole:.3g}".replace("%", " %")
        less = "less than" if drop + width < self.epsilon * abs(whole) else "which is not certain to be"
        end = f"at least {goal}" if enough else f"{less} {goal}; no smaller set does better"
        end = end if drop >= 0 else f"and no set that was tried lowers it by {goal}"
        facts = {"set_drop": drop, "set_drop_error": width, "set_size": len(best.units), "masks": sweep.n_evaluated}
        note = Note(f"{start}, on average over masked texts, {end}.", "result")
        return self.explanation(question, index, scores, error, facts).noted((note, *sweep.notes))

    def _search(
        self, keep: Bool[np.ndarray, "mask unit"], values: Float[np.ndarray, "mask"], enough: float, fewest: int
    ) -> _Drop:
        """The best set of the smallest size that reaches `enough`, or the best of all sizes."""
        mean, beam, best = float(values.mean()), [_Drop((), 0.0)], _Drop((0,), -np.inf)
        for _ in range(min(self.max_size, keep.shape[1])):
            sets = {tuple(sorted((*c.units, j))) for c in beam for j in range(keep.shape[1]) if j not in c.units}
            without = {units: values[~keep[:, units].any(axis=1)] for units in sorted(sets)}
            drops = [_Drop(units, mean - float(own.mean())) for units, own in without.items() if len(own) >= fewest]
            beam = sorted(drops or ([] if best.value > -np.inf else [best]), key=lambda c: -c.value)[: self.beam_width]
            best = max([best, *beam[:1]], key=lambda c: c.value)
            if not beam or best.value >= enough:
                break
        return best


def _singles(
    keep: Bool[np.ndarray, "mask unit"], values: Float[np.ndarray, "mask"], exact: bool
) -> tuple[Float[np.ndarray, "unit"], Float[np.ndarray, "unit"]]:
    """Δ_j of every unit, ½ (E[f | j kept] − E[f | j removed]), and the half-width of its 95 % interval."""
    means, variances = [], []
    for side in (keep, ~keep):
        n = np.maximum(side.sum(axis=0), 1)
        mean = values @ side / n
        means.append(mean)
        variances.append(((values[:, None] - mean) ** 2 * side).sum(axis=0) / np.maximum(n - 1, 1) / n)
    width = np.zeros_like(means[0]) if exact else NORMAL_97_5 / 2 * np.sqrt(variances[0] + variances[1])
    return (means[0] - means[1]) / 2, width


def _fresh(sweep: Sweep, units: tuple[int, ...], n: int, rng: np.random.Generator) -> tuple[float, float]:
    """The drop without a set on pairs of new masks, equal but for the set, and its half-width."""
    keep = rng.random((n, sweep.n_units)) < 0.5
    without = keep.copy()
    without[:, units] = False
    values = sweep(np.concatenate([keep, without]))
    drop, width = mean_of_draws((values[:n] - values[n:])[:, None])
    return float(drop[0]), float(width[0])
