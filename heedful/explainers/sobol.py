"""Sobol' indices: the share of the target's variance due to each unit, with an interval on every share."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.document import Absence, check_absence
from heedful.document.note import Note
from heedful.document.units import plural
from heedful.errors import BadInput, TooFewSamples
from heedful.explainers import Group, MaskingExplainer, Question
from heedful.explanation import Explanation
from heedful.models import Offer
from heedful.perturb.forecast import MaskCount
from heedful.perturb.masks import generator
from heedful.perturb.rounds import stopped_note
from heedful.perturb.sweep import Interrupted, Sweep
from heedful.statistics.intervals import student_97_5

_LEAST = 5
"""Fewer rounds give no estimate of their variance."""
_MOST = 10_000_000
_AT_ONCE = 10_000
_STILL = 1e-6
_BORROWED = 20
_FEW = 20


@final
class Indices(NamedTuple):
    """Total and first-order indices, the half-widths of their 95 % intervals, and the variance they are shares of."""

    total: Float[np.ndarray, "unit"]
    first: Float[np.ndarray, "unit"]
    total_error: Float[np.ndarray, "unit"]
    first_error: Float[np.ndarray, "unit"]
    variance: float


@final
@dataclass(frozen=True)
class Sobol(MaskingExplainer):
    """Sobol' indices: share of the target's variance due to each unit.

    Every unit is kept with probability ½, independently of the others. With Δ = f with − f without the unit,

        S_T = E[Var(f | all other units)] / Var f = ¼ E[Δ²] / Var f        order="total": joint effects included
        S_1 = Var(E[f | the unit]) / Var f        = ¼ (E Δ)² / Var f       order="first": its own effect alone

    First-order indices sum to at most 1, total ones to at least 1; both sums are 1 if f is a sum over units. Scores
    have no sign. If the 2^d masks are at most `n_samples`, the model is evaluated on each once and scores are exact.

    Reference: Sobol', 1993; Jansen, 1999; Saltelli et al., 2010; for images Fel et al., 2021, arXiv:2111.04138.
    Differs from their estimators, which compare mask A with A after unit i is copied from B: half of the time the two
    are the same mask. Here masks are winding stairs (Chan, Saltelli & Tarantola, 2000): from a random mask, units are
    switched one by one in random order until the complement, and in the same order back, so that 2d masks give every
    unit's Δ twice, in complementary contexts. Var f is the variance of a linear surrogate, known from the Δs, plus that
    of its residuals. Masks keep or remove whole units; Fel et al. dim images by degrees.

    Intervals (95 %) use the delta method over rounds, on a logarithmic scale for S_T, with variances shrunk towards
    those of the other units. At least 5 rounds, 10 samples per unit, are needed. With fewer than twenty rounds and
    mostly joint effects, intervals can be too narrow (80 to 90 % instead of 95 %); a note says so.
    """

    name: ClassVar[str] = "sobol"
    group: ClassVar[Group] = "removal"
    needs: ClassVar[frozenset[Offer]] = frozenset({"masks"})
    signed: ClassVar[bool] = False

    order: Literal["total", "first"] = "total"
    n_samples: int = 5000
    seed: int = 0
    absence: Absence = "replace"

    def __post_init__(self) -> None:
        check_absence(self.absence)
        if not 2 <= self.n_samples <= _MOST:
            raise BadInput(f"{self.name} takes 2 to {_MOST:,} samples; n_samples is {self.n_samples:,}.")

    def n_masks(self, n_units: int) -> MaskCount:  # noqa: ARG002
        return MaskCount(self.n_samples, "n_samples")

    def explain_batch(self, question: Question) -> list[Explanation]:
        return [self._explain(question, index) for index in range(len(question.documents))]

    def _explain(self, question: Question, index: int) -> Explanation:
        document, sweep = question.documents[index], Sweep(question, index, self.unit, self.absence)
        d = sweep.n_units
        listed = 2**d <= self.n_samples
        n_rounds = min(self.n_samples, 2**d) // (2 * d)
        if not listed and n_rounds < _LEAST:
            raise TooFewSamples(
                f"needs at least {2 * _LEAST * d} samples for {d} {plural(self.unit)}; n_samples is {self.n_samples}.",
                self.name,
            )
        winding = Winding.draw(d, n_rounds, generator(self.seed, document))
        sweep.expected = 2**d if listed else 2 * d * n_rounds
        values, whole = _evaluate_all(winding, sweep) if listed else _evaluate_rounds(winding, sweep)
        notes = () if whole else (stopped_note(sweep.n_masks, sweep.expected),)
        if np.ptp(values) <= _STILL * np.abs(values).max():
            constant = "The target is nearly constant over masks, so there is no variance to attribute."
            zeros = np.zeros(d)
            result, notes = Indices(zeros, zeros, zeros, zeros, 0.0), (*notes, Note(constant, "uninformative"))
        elif listed and whole:
            result = exact_indices(values)
        else:
            result = winding.first(len(values)).indices(values)
            if len(values) < _FEW and result.first.sum() < 0.5:
                few = f"Units act jointly and {len(values)} rounds are few: intervals may be too narrow."
                notes = (*notes, Note(few, "few-samples"))
        scores, error = (
            (result.total, result.total_error) if self.order == "total" else (result.first, result.first_error)
        )
        facts = {"masks": sweep.n_evaluated, "variance": result.variance, "additive_share": float(result.first.sum())}
        return self.explanation(question, index, scores, error, facts).noted((*notes, *sweep.notes))


@final
@dataclass(frozen=True)
class Winding:
    """Rounds of masks that differ by one unit each: their first masks, and the order in which units are switched."""

    start: Bool[np.ndarray, "round unit"]
    order: Int[np.ndarray, "round unit"]

    @staticmethod
    def draw(n_units: int, n_rounds: int, rng: np.random.Generator) -> "Winding":
        # Drawn round by round, so that fewer rounds are the first ones of more rounds.
        drawn = rng.random((n_rounds, 2, n_units))
        return Winding(drawn[:, 0] < 0.5, np.argsort(drawn[:, 1], axis=1))

    def first(self, n_rounds: int) -> "Winding":
        return Winding(self.start[:n_rounds], self.order[:n_rounds])

    def masks(self, begin: int, end: int) -> Bool[np.ndarray, "mask unit"]:
        """The masks of some rounds: d towards the complement, and d back."""
        n_units = self.start.shape[1]
        rank = np.argsort(self.order[begin:end], axis=1)
        forth = self.start[begin:end, None] ^ (rank[:, None] < np.arange(n_units)[:, None])
        return np.concatenate([forth, ~forth], axis=1).reshape(-1, n_units)

    def differences(
        self, values: Float[np.ndarray, "round place"]
    ) -> tuple[Float[np.ndarray, "round unit"], Float[np.ndarray, "round unit"]]:
        """f with − f without each unit, towards the complement and back."""
        steps = np.roll(values, -1, axis=1) - values
        sign, rank = np.where(self.start, -1.0, 1.0), np.argsort(self.order, axis=1)
        forth, back = np.split(steps, 2, axis=1)
        return sign * np.take_along_axis(forth, rank, axis=1), -sign * np.take_along_axis(back, rank, axis=1)

    def line(self, slopes: Float[np.ndarray, "round unit"]) -> Float[np.ndarray, "round place"]:
        """Σ_j slope_j (z_j − ½) of every mask z, with separate slopes for each round."""
        gain = slopes * np.where(self.start, -1.0, 1.0)
        forth = np.cumsum(np.take_along_axis(gain, self.order, axis=1), axis=1) - gain.sum(axis=1, keepdims=True) / 2
        forth = np.concatenate([-forth[:, -1:], forth[:, :-1]], axis=1)
        return np.concatenate([forth, -forth], axis=1)

    def indices(self, values: Float[np.ndarray, "round place"]) -> Indices:
        """Estimates from the target's values on all masks, one row per round."""
        n = len(values)
        forth, back = self.differences(values)
        slopes, squares = (forth + back) / 2, (forth**2 + back**2) / 2
        slope, square = slopes.mean(axis=0), squares.mean(axis=0)
        variances = self._variances(values, slopes)
        variance = max(float(variances.mean()), float(square.max()) / 4)
        # Squares have long tails, so the degrees of freedom are two thirds of those of the rounds.
        student = student_97_5((n - 1) * 2 / 3)
        relative = variances[:, None] / variance
        scale, noise = np.maximum(square, 1e-300), slopes.var(axis=0, ddof=1) / n
        jointly = np.clip(1 - (slope**2 - noise) / scale, 0, 1)

        total = square / (4 * variance)
        spread = _raised((squares / scale - relative).var(axis=0, ddof=1) / n, jointly, n)
        # A square that is too small by chance has a small variance as well; its logarithm does not.
        total_error = total * np.expm1(np.minimum(student * np.sqrt(spread), 10))

        first = (slope**2 - noise) / (4 * variance)
        drift = (slope * slopes / (2 * variance) - first * relative).var(axis=0, ddof=1) / n
        raised = _raised(noise, jointly * square, n)
        # The square of a mean near zero has a variance of its own, which its slope does not show.
        around = drift * raised / np.maximum(noise, 1e-300) + 2 * (raised / (4 * variance)) ** 2
        return Indices(total, np.maximum(first, 0), total_error, student * np.sqrt(around), variance)

    def _variances(
        self, values: Float[np.ndarray, "round place"], slopes: Float[np.ndarray, "round unit"]
    ) -> Float[np.ndarray, "round"]:
        """For every round an estimate of Var f; their mean is unbiased.

        For any slopes b, Var f = Var(f − b·z) + ¼ (2 b·E Δ − b·b). b is estimated from all other rounds, so that it is
        independent of the round's own Δ and f; the closer b·z is to f, the smaller is the variance of the estimate.
        """
        n = len(values)
        others = (slopes.sum(axis=0) - slopes) / (n - 1)
        left = values - self.line(others)
        means = left.mean(axis=1)
        around = ((left - means.mean()) ** 2).mean(axis=1) + means.var(ddof=1) / n
        return around + (2 * (others * slopes).sum(axis=1) - (others**2).sum(axis=1)) / 4


def _raised(
    own: Float[np.ndarray, "unit"], likeness: Float[np.ndarray, "unit"], n_rounds: int
) -> Float[np.ndarray, "unit"]:
    """Variances, the small ones raised towards values proportional to `likeness`.

    Few rounds contain the masks where a unit matters most; those of all units together contain more of them. The more
    rounds, the smaller the correction.
    """
    shown = likeness * (likeness * own).sum() / max(float((likeness**2).sum()), 1e-300)
    return own + np.maximum(shown - own, 0) * _BORROWED / (_BORROWED + n_rounds)


def exact_indices(values: Float[np.ndarray, "mask"]) -> Indices:
    """From f on all masks in the order of binary numbers, the first unit the lowest digit."""
    d, variance = len(values).bit_length() - 1, float(values.var())
    total, first = np.zeros(d), np.zeros(d)
    for unit in range(d):
        pairs = values.reshape(-1, 2, 2**unit)
        difference = pairs[:, 1] - pairs[:, 0]
        total[unit], first[unit] = (difference**2).mean(), difference.mean() ** 2
    return Indices(total / (4 * variance), first / (4 * variance), np.zeros(d), np.zeros(d), variance)


def _evaluate_rounds(winding: Winding, sweep: Sweep) -> tuple[Float[np.ndarray, "round place"], bool]:
    """The values of all rounds, or of those complete when the user stopped; and whether these are all."""
    n_rounds, d = winding.start.shape
    values, portion = [np.zeros((0, 2 * d))], max(1, _AT_ONCE // (2 * d))
    for begin in range(0, n_rounds, portion):
        try:
            values.append(sweep(winding.masks(begin, begin + portion)).reshape(-1, 2 * d))
        except Interrupted as stop:
            values.append(_complete(stop, 2 * d))
            if sum(map(len, values)) < _LEAST:
                raise
            return np.concatenate(values), False
    return np.concatenate(values), True


def _evaluate_all(winding: Winding, sweep: Sweep) -> tuple[Float[np.ndarray, "..."], bool]:
    """The values of every mask; or, if the user stops, of complete rounds.

    Rounds are evaluated first, since any part of them is a fair sample.
    """
    n_rounds, d = winding.start.shape
    every = (np.arange(2**d)[:, None] >> np.arange(d)) % 2 == 1
    n_winding = 2 * d * n_rounds
    try:
        return sweep(np.concatenate([winding.masks(0, n_rounds), every]))[n_winding:], True
    except Interrupted as stop:
        values = _complete(Interrupted(stop.values[:n_winding], stop.evaluated[:n_winding]), 2 * d)
        if len(values) < _LEAST:
            raise
        return values, False


def _complete(stop: Interrupted, length: int) -> Float[np.ndarray, "round place"]:
    done = stop.evaluated.reshape(-1, length).all(axis=1).cumprod().astype(bool)
    return stop.values.reshape(-1, length)[done]
