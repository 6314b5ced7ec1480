"""Drawing masks until the answer is sure enough."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf
from typing import Literal, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.errors import BadInput
from heedful.perturb.masks import Draws
from heedful.perturb.surrogate import Surrogate
from heedful.perturb.sweep import distinct
from heedful.perturb.walks import Walks, mean_gain

Samples = int | Literal["auto"]
"""How many masks are drawn: a number, or as many as the tolerance needs."""

Answer = Callable[[Bool[np.ndarray, "mask unit"]], Float[np.ndarray, "mask"]]
"""f on every mask."""
Fit = Callable[[Draws, Float[np.ndarray, "mask"]], Surrogate]

_MOST = 10_000_000


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
    """Bytes for each mask and unit: a line needs several numbers, a walk little more than one."""

    def check(self) -> None:
        for setting, number in (("n_samples", self.n_samples), ("budget", self.budget)):
            if isinstance(number, int) and not 10 <= number <= _MOST:
                raise BadInput(f"{self.name} takes 10 to {_MOST:,} samples; {setting} is {number:,}.")
        if not 0 < self.tolerance < inf:
            raise BadInput(f"{self.name} needs a tolerance above 0; {self.tolerance:g} was given.")

    def first_round(self, n_units: int, unit: str) -> int:
        """How many masks the first round draws, checked against the number of units."""
        least = ceil(self.a_unit * n_units)
        given, setting = (self.budget, "budget") if self.n_samples == "auto" else (self.n_samples, "n_samples")
        if given < min(least, 2**n_units):
            raise BadInput(f"{self.name} needs at least {least} samples for {n_units} {unit}s; {setting} is {given}.")
        gigabytes = given * n_units * self.memory * 1e-9
        if gigabytes > 5:
            raise BadInput(
                f"{given:,} samples of {n_units} {unit}s would need about {gigabytes:.0f} GB of memory; take fewer."
            )
        return min(max(200, 2 * least), given) if self.n_samples == "auto" else given


@final
@dataclass(frozen=True)
class Sampled:
    """A fitted line, what it cost, and in a sentence why sampling stopped, if that was left to it."""

    line: Surrogate
    n_samples: int
    n_masks: int
    notes: tuple[str, ...]

    @property
    def facts(self) -> dict[str, int | float]:
        return {
            "masks": self.n_masks,
            "samples": self.n_samples,
            "effective_samples": self.line.effective_samples,
            "intercept": self.line.intercept,
            "r_squared": self.line.r_squared,
            "top_5_certainty": self.line.top_certainty,
        }


@final
class Rounds:
    """Masks drawn round after round, each distinct one of a round answered once, and the line through all answers."""

    def __init__(self, draw: Callable[[int], Draws], answer: Answer, fit: Fit) -> None:
        self.draw, self.answer, self.fit = draw, answer, fit
        self.draws: Draws | None = None
        self.values = np.zeros(0)

    def more(self, n_samples: int) -> tuple[Surrogate, int]:
        """The line after so many more samples, and how many masks they asked."""
        fresh = self.draw(n_samples)
        masks, place = distinct(fresh.keep[0 if self.draws is None else fresh.n_certain :])
        self.values = np.concatenate([self.values, self.answer(masks)[place]])
        self.draws = fresh if self.draws is None else self.draws.and_more(fresh)
        return self.fit(self.draws, self.values), len(masks)


@final
class WalkRounds:
    """Walks taken round after round, and the mean gain over all of them."""

    def __init__(self, n_units: int, chance: np.random.Generator, answer: Answer) -> None:
        self.n_units, self.chance, self.answer = n_units, chance, answer
        self.rounds: list[tuple[Walks, Float[np.ndarray, "pair unit"]]] = []
        self.ends: Float[np.ndarray, 2] | None = None

    def more(self, n_samples: int) -> tuple[Surrogate, int]:
        walks = Walks.draw(self.n_units, max(5, n_samples // (2 * self.n_units - 2)), self.chance)
        keep = walks.masks
        masks, place = distinct(keep)
        values = self.answer(masks)[place]
        asked = len(masks)
        if self.ends is None:
            self.ends = self.answer(np.array([[True], [False]]).repeat(self.n_units, axis=1))
            asked += 2
        whole, empty = self.ends.tolist()
        self.rounds.append((walks, walks.gains(values, whole, empty)))
        return mean_gain(self.rounds, empty, keep, values), asked


def sample(plan: Plan, first_round: int, rounds: Rounds | WalkRounds) -> Sampled:
    """Takes the samples of the plan: all at once, or round after round where the plan leaves their number open.

    Intervals narrow with the root of the number of samples, so the next round is as large as that asks for, but no
    larger than all before it.
    """
    n_new, asked, taken = first_round, 0, 0
    while True:
        line, masks = rounds.more(n_new)
        asked, taken = asked + masks, taken + n_new
        if plan.n_samples != "auto":
            return Sampled(line, taken, asked, ())
        widest = float(line.half_widths.max())
        if widest <= plan.tolerance:
            note = f"Stopped after {taken:,} samples: every 95 % interval is within ±{widest:.2g}."
            return Sampled(line, taken, asked, (note,))
        left = plan.budget - taken
        if left < first_round:
            note = f"The budget of {plan.budget:,} samples is spent; an interval of ±{widest:.2g} is left."
            return Sampled(line, taken, asked, (note,))
        needed = 1.1 * taken * (widest / plan.tolerance) ** 2 - taken
        n_new = int(min(max(needed, first_round), taken, left))
