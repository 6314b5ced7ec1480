"""Sampling in rounds: masks are drawn until every 95 % interval is narrow enough or the budget is spent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Literal, final

import numpy as np
from jaxtyping import Float

from heedful.document.note import Note
from heedful.errors import BadInput, TooFewSamples
from heedful.perturb.forecast import MaskCount
from heedful.perturb.masks import Draws
from heedful.perturb.permutations import Walks, mean_gain
from heedful.perturb.surrogate import Surrogate
from heedful.perturb.sweep import Interrupted, Sweep

Samples = int | Literal["auto"]
"""How many masks are drawn: a number, or as many as the tolerance needs."""

Fit = Callable[[Draws, Float[np.ndarray, "mask"]], Surrogate]

_MOST = 10_000_000
FEWEST_MASKS = 34
"""The whole text, the empty text and 16 pairs of masks: fewer are not enough to estimate the variance."""


@final
@dataclass(frozen=True)
class Plan:
    """How many masks to draw: `n_samples`, or if that is "auto" until every 95 % half-width is below `tolerance`, but
    no more than `budget`; never fewer than `a_unit` for each unit.
    """

    name: str
    n_samples: Samples
    a_unit: float
    tolerance: float
    budget: int
    memory: float = 50.0
    """Bytes for each mask and unit: a regression needs several numbers, a walk little more than one."""

    @property
    def n_masks(self) -> MaskCount:
        """How many masks may be drawn, and the setting that limits them."""
        return MaskCount(self.budget, "budget") if self.n_samples == "auto" else MaskCount(self.n_samples, "n_samples")

    def check(self) -> None:
        """Refuses settings that are invalid for every document."""
        for setting, number in (("n_samples", self.n_samples), ("budget", self.budget)):
            if isinstance(number, int) and not 10 <= number <= _MOST:
                raise BadInput(f"{self.name} takes 10 to {_MOST:,} samples; {setting} is {number:,}.")
        if not 0 < self.tolerance < inf:
            raise BadInput(f"{self.name} needs a tolerance above 0; {self.tolerance:g} was given.")

    def too_few(self, n_units: int) -> bool:
        """Whether there are too few samples for a regression or for walks."""
        return self.n_samples != "auto" and self.n_samples < min(ceil(self.a_unit * n_units), 2**n_units)

    def first_round(self, n_units: int, unit: str) -> int:
        """The number of masks of the first round, checked against the number of units."""
        least = ceil(self.a_unit * n_units)
        limit, setting = (self.budget, "budget") if self.n_samples == "auto" else (self.n_samples, "n_samples")
        if limit < min(least, 2**n_units):
            # From FEWEST_MASKS on the moments of the law replace a regression, unless masks are drawn independently.
            least = min(least, FEWEST_MASKS) if self.a_unit > 1.5 and self.n_samples != "auto" else least
            kind = BadInput if self.n_samples == "auto" else TooFewSamples
            raise kind(f"needs at least {least} samples for {n_units} {unit}s; {setting} is {limit}.", self.name)
        gigabytes = limit * n_units * self.memory * 1e-9
        if gigabytes > 5:
            raise BadInput(
                f"{limit:,} samples of {n_units} {unit}s would need about {gigabytes:.0f} GB of memory; lower "
                "n_samples."
            )
        return min(max(200, 2 * least), limit) if self.n_samples == "auto" else limit


@final
@dataclass(frozen=True)
class Sampled:
    """A fitted linear surrogate, its cost, and notes on why sampling stopped."""

    line: Surrogate
    n_samples: int
    n_masks: int
    notes: tuple[Note, ...]
    more: Mapping[str, int | float] = field(default_factory=dict)
    """Further facts."""

    @property
    def facts(self) -> dict[str, int | float]:
        """The facts of the explanation: cost and quality of the fit."""
        return {
            "masks": self.n_masks,
            "samples": self.n_samples,
            "effective_samples": self.line.effective_samples,
            "intercept": self.line.intercept,
            "r_squared": self.line.r_squared,
            "top_5_certainty": self.line.top_certainty,
            **self.more,
        }


@final
class Rounds:
    """Masks drawn in rounds, and the linear surrogate of all values so far."""

    def __init__(self, draw: Callable[[int], Draws], sweep: Sweep, fit: Fit) -> None:
        self.draw, self.sweep, self.fit = draw, sweep, fit
        self.draws: Draws | None = None
        self.values = np.zeros(0)
        self.stopped = False

    @property
    def n_used(self) -> int:
        """The number of samples used by the fit."""
        return len(self.values)

    def more(self, n_samples: int) -> Surrogate:
        """The surrogate after n more samples; if the user stops, after those that were evaluated."""
        fresh = self.draw(n_samples)
        first = 0 if self.draws is None else fresh.n_certain
        # Sizes are mixed, so that the first masks are a fair sample if the user stops.
        order = fresh.shuffled()[first:]
        values, evaluated = np.zeros(len(fresh.keep)), np.ones(len(fresh.keep), dtype=bool)
        try:
            values[order] = self.sweep(fresh.keep[order])
        except Interrupted as partial:
            values[order], evaluated[order] = partial.values, partial.evaluated
            evaluated = fresh.usable(evaluated)
            if not evaluated[: fresh.n_certain].all() or len(self.values) + evaluated.sum() < 2.5 * self.sweep.n_units:
                raise
            fresh, self.stopped = fresh.only(evaluated), True
        self.values = np.concatenate([self.values, values[evaluated][first:]])
        self.draws = fresh if self.draws is None else self.draws.and_more(fresh)
        return self.fit(self.draws, self.values)


@final
class WalkRounds:
    """Walks taken round after round, and the mean gain over all of them."""

    def __init__(self, rng: np.random.Generator, sweep: Sweep) -> None:
        self.rng, self.sweep, self.stopped = rng, sweep, False
        self.last = np.zeros((0, sweep.n_units), dtype=bool), np.zeros(0)
        self.rounds: list[tuple[Walks, Float[np.ndarray, "pair unit"]]] = []
        self.ends: Float[np.ndarray, 2] | None = None

    @property
    def n_used(self) -> int:
        """The number of samples used by the mean."""
        return sum(len(gains) for _, gains in self.rounds) * 2 * (self.sweep.n_units - 1)

    def more(self, n_samples: int) -> Surrogate:
        """The mean gains after n more samples; if the user stops, after those that were evaluated."""
        d = self.sweep.n_units
        if self.ends is None:
            self.ends = self.sweep(np.array([[True], [False]]).repeat(d, axis=1))
        whole, empty = self.ends.tolist()
        walks = Walks.draw(d, max(5, n_samples // (2 * d - 2)), self.rng)
        keep = walks.masks
        try:
            values = self.sweep(keep)
        except Interrupted as partial:
            # Walks come in pairs, an order and its reverse; a pair counts if all its masks were evaluated.
            n_whole = int(partial.evaluated.reshape(len(walks.distances), -1).all(axis=1).cumprod().sum())
            if n_whole < 5 and not self.rounds:
                raise
            # One pair of walks shows no variance.
            n_whole = n_whole if n_whole > 1 else 0
            self.stopped = True
            walks, keep = walks.first(n_whole), keep[: n_whole * 2 * (d - 1)]
            values = partial.values[: len(keep)]
        if len(keep):
            self.rounds.append((walks, walks.gains(values, whole, empty)))
            self.last = keep, values
        return mean_gain(self.rounds, empty, *self.last)


def stopped_note(n_masks: int, n_planned: int) -> Note:
    """Says that the user stopped sampling early."""
    return Note(f"Stopped by the user after {n_masks:,} of {n_planned:,} masks, so the intervals are wider.", "stopped")


def sample(plan: Plan, first_round: int, rounds: Rounds | WalkRounds) -> Sampled:
    """Takes the samples of the plan: all at once, or in rounds if their number is "auto".

    Intervals narrow with the root of the number of samples. The next round is as large as that requires, but no larger
    than all rounds before it.
    """
    sweep, n_new, taken = rounds.sweep, first_round, 0
    sweep.expected = first_round if plan.n_samples == "auto" else plan.n_samples
    while True:
        line = rounds.more(n_new)
        taken += n_new
        if rounds.stopped:
            note = stopped_note(sweep.n_masks, taken)
            return Sampled(line, rounds.n_used, sweep.n_evaluated, (note,))
        if plan.n_samples != "auto":
            return Sampled(line, taken, sweep.n_evaluated, ())
        widest = float(line.half_widths.max())
        if widest <= plan.tolerance:
            narrow = f"Stopped after {taken:,} samples: every 95 % interval is within ±{widest:.2g}."
            return Sampled(line, taken, sweep.n_evaluated, (Note(narrow, "reached"),))
        left = plan.budget - taken
        if left < first_round:
            wide = f"Stopped at the budget of {plan.budget:,} samples; the widest 95 % interval is ±{widest:.2g}."
            return Sampled(line, taken, sweep.n_evaluated, (Note(wide, "budget"),))
        needed = 1.1 * taken * (widest / plan.tolerance) ** 2 - taken
        n_new = int(min(max(needed, first_round), taken, left))
        sweep.expected = sweep.n_masks + n_new
