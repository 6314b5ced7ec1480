"""The search for an anchor: a few units that keep the model's output, whatever else is removed.

The precision of a set is how often the output stays when the set is kept and every other unit is kept with probability
`presence`. Sets are chosen from samples that they share; the bounds of the chosen set come from samples of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf, log, sqrt
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.perturb.sweep import Interrupted, MaskedCopy, distinct, spread_copies
from heedful.statistics.intervals import NORMAL_97_5

Stays = Callable[[Bool[np.ndarray, "mask unit"]], Bool[np.ndarray, "mask"]]
"""Whether the model's output is that of the whole text, for every mask."""
Units = tuple[int, ...]
"""A set of units, in the order in which they were chosen."""

_FIRST, _ROUND, _PULL, _ENOUGH = 400, 128, 32, 128
"""Samples: for the empty set, per round of a test, per set in a turn of KL-LUCB, per set before the first turn."""
_FEWEST, _MOST = 30, 2000
"""The number of samples that the gains are estimated from."""
_GAP, _RISK = 0.02, 0.1
"""KL-LUCB stops when, except with this risk, no other set is better than the best by more than this gap."""
_BETS = np.array([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1 - 1e-9])


@final
@dataclass(frozen=True)
class Terms:
    """The required precision and confidence, the distribution of the masks, and the budget."""

    precision: float
    confidence: float
    presence: float
    beam_width: int
    budget: int


@final
@dataclass(frozen=True)
class Anchor:
    """A set of units, its precision with a lower bound, what each unit added to `base`, and masks that keep the set."""

    units: Units
    precision: float
    lower: float
    base: float
    gains: Float[np.ndarray, "step"]
    errors: Float[np.ndarray, "step"]
    n_tested: int
    n_fresh: int
    examples: tuple[MaskedCopy, ...]
    exact: bool = False
    stopped: bool = False


def divergence(p: Float[np.ndarray, "arm"], q: Float[np.ndarray, "arm"]) -> Float[np.ndarray, "arm"]:
    """KL(p ‖ q) of two Bernoulli distributions."""
    p, q = np.clip(p, 1e-15, 1 - 1e-15), np.clip(q, 1e-15, 1 - 1e-15)
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


def kl_bounds(
    stayed: Int[np.ndarray, "arm"], n: Int[np.ndarray, "arm"], level: float
) -> tuple[Float[np.ndarray, "arm"], Float[np.ndarray, "arm"]]:
    """The least and the greatest q with n KL(stayed/n ‖ q) ≤ level; each fails with probability e^{−level} at most."""
    mean, room = stayed / np.maximum(n, 1), level / np.maximum(n, 1)
    bounds = []
    for end in (0.0, 1.0):
        inner, outer = mean, np.full_like(mean, end)
        for _ in range(40):
            middle = (inner + outer) / 2
            within = divergence(mean, middle) <= room
            inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
        bounds.append(np.where(n > 0, outer, end))
    return bounds[0], bounds[1]


def exploration(n_arms: int, turn: int, risk: float) -> float:
    """β(t, δ), the level of KL-LUCB's bounds at turn t (Kaufmann & Kalyanakrishnan, 2013; α = 1.1, k = 405.5)."""
    level = log(405.5 * n_arms * turn**1.1 / risk)
    return level + log(level)


def lower_bound(stayed: int, n: int, risk: float) -> float:
    """A lower confidence bound of a probability that fails with probability `risk` at most, at any stopping time.

    Betting a share g on each success gives the wealth (1 − g)^{failures} (1 + g (1 − τ)/τ)^{successes}, a fair game if
    the probability is τ. If it is at most τ, the wealth ever reaches 1/risk with probability `risk` at most (Ville,
    1939). The bound is the τ at which the mean over a few g is 1/risk (Waudby-Smith & Ramdas, 2024).
    """
    lost, low, high = (n - stayed) * np.log1p(-_BETS), 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        wealth = lost + stayed * np.log1p(_BETS * (1 - middle) / middle)
        rich = np.logaddexp.reduce(wealth) >= log(len(_BETS) / risk)
        low, high = (middle, high) if rich else (low, middle)
    return low


@final
@dataclass(frozen=True)
class _Test:
    """Samples of one set alone: the masks before the set was added, and whether the output stayed."""

    units: Units
    risk: float
    raw: Bool[np.ndarray, "mask unit"]
    stays: Bool[np.ndarray, "mask"]

    @property
    def seen(self) -> tuple[int, int]:
        return len(self.stays), int(self.stays.sum())

    @property
    def lower(self) -> float:
        return lower_bound(int(self.stays.sum()), len(self.stays), self.risk)


@final
class Search:
    """Bottom-up beam search (Ribeiro, Singh & Guestrin, 2018), and a test of every set that seems good enough.

    A sample of a set B is also one of B with any unit that it happens to keep, so a few hundred masks serve all sets of
    one more unit. The t-th test has the risk (1 − confidence)/(t (t + 1)): all bounds hold with that confidence.
    """

    def __init__(self, n_units: int, stays: Stays, terms: Terms, rng: np.random.Generator) -> None:
        self.n_units, self.stays, self.terms, self.rng = n_units, stays, terms, rng
        self.pool: list[tuple[Units, Bool[np.ndarray, "_ unit"], Bool[np.ndarray, "_"]]] = []  # noqa: UP037
        self.tests: dict[Units, _Test] = {}
        self.n_masks, self.stopped = 0, False

    @property
    def left(self) -> int:
        """The number of masks left in the budget."""
        return 0 if self.stopped else self.terms.budget - self.n_masks

    def run(self) -> Anchor:
        """Grows sets until one passes its test or the budget is spent; the anchor is the best tested set."""
        beam: list[Units] = [()]
        result = self._test((), self.left / 4, min(_FIRST, self.left // 5))
        while result is None and len(beam[0]) < self.n_units and self.left > self.terms.budget / 5:
            beam = self._grow(beam)
            for units in beam:
                if result is None and self._needed(*self._counted(units)) <= self.left / 3:
                    result = self._test(units, self.left / 3)
            if self._counted(beam[0])[0] == self._counted(beam[0])[1] >= 100:
                break
        if result is None and self.left:
            hopeful = [test for test in self.tests.values() if self._needed(*test.seen) < inf]
            last = max(hopeful, key=lambda test: test.lower).units if hopeful else beam[0]
            worth = bool(hopeful) or self._needed(*self._counted(last)) < inf
            result = self._test(last, 0.0, int(0.8 * self.left) if worth else _ROUND)
        test = result or max(self.tests.values(), key=lambda test: test.lower)
        gains, errors = self._gains(test)
        n, stayed = test.seen
        bounds = (precision := stayed / max(n, 1)), test.lower, precision - float(gains.sum())
        examples = spread_copies(test.raw, test.stays, test.units)
        return Anchor(test.units, *bounds, gains, errors, len(self.tests), n, examples, stopped=self.stopped)

    def _draw(self, sets: list[Units], n: int) -> tuple[Bool[np.ndarray, "mask unit"], Bool[np.ndarray, "mask"]]:
        """n samples of each set, evaluated together: the masks before the set was added, and if the output stayed."""
        raw = self.rng.random((n * len(sets), self.n_units)) < self.terms.presence
        keep = raw.copy()
        for number, units in enumerate(sets):
            keep[number * n : (number + 1) * n, list(units)] = True
        stays, evaluated = self._stays(keep)
        for number, units in enumerate(sets):
            own = np.flatnonzero(evaluated[number * n : (number + 1) * n]) + number * n
            self.pool.append((units, keep[own], stays[own]))
        return raw[evaluated], stays[evaluated]

    def _stays(self, keep: Bool[np.ndarray, "mask unit"]) -> tuple[Bool[np.ndarray, "mask"], Bool[np.ndarray, "mask"]]:
        """Whether the output stays, and which masks were evaluated before the user stopped."""
        evaluated = np.ones(len(keep), dtype=bool)
        try:
            stays = self.stays(keep)
        except Interrupted as stop:
            # Later masks that equal an earlier one would count too often.
            self.stopped, stays, evaluated = True, stop.values > 0, np.logical_and.accumulate(stop.evaluated)
        self.n_masks += len(distinct(keep[evaluated])[0])
        return stays, evaluated

    def _test(self, units: Units, allowance: float, n_new: int = _ROUND) -> _Test | None:
        """Draws samples until the precision is certain; None once that is unlikely within the allowance."""
        number = len(self.tests) + 1
        risk = (1 - self.terms.confidence) / (number * (number + 1))
        nothing = np.zeros((0, self.n_units), dtype=bool), np.zeros(0, dtype=bool)
        test, end = self.tests.get(units, _Test(units, risk, *nothing)), self.n_masks + allowance
        while self.left:
            raw, stays = self._draw([units], min(n_new, self.left))
            test = replace(test, raw=np.concatenate([test.raw, raw]), stays=np.concatenate([test.stays, stays]))
            self.tests[units] = test
            if test.lower >= self.terms.precision:
                return test
            if self._needed(*test.seen) - len(test.stays) > end - self.n_masks:
                return None
            n_new = max(_ROUND, len(test.stays) // 4)
        return None

    def _needed(self, n: int, stayed: int, optimism: float = 1.0) -> float:
        """About how many samples a test needs if the precision is a standard error above the observed one."""
        mean = stayed / max(n, 1)
        hoped = min(1.0, mean + optimism * sqrt(mean * (1 - mean) / max(n, 1)))
        if hoped <= self.terms.precision:
            return inf
        number = len(self.tests) + 1
        stake = log(len(_BETS) * number * (number + 1) / (1 - self.terms.confidence))
        return stake / float(divergence(np.array([hoped]), np.array([self.terms.precision]))[0])

    def _counted(self, units: Units) -> tuple[int, int]:
        """The number of samples of a set, and in how many of them the output stayed the same."""
        if not units:
            return self.tests[()].seen
        n, stayed = self._counts(units[:-1])
        return int(n[units[-1]]), int(stayed[units[-1]])

    def _counts(self, units: Units) -> tuple[Int[np.ndarray, "unit"], Int[np.ndarray, "unit"]]:
        """The same for a set with each unit added; samples of smaller sets are left out, since they chose this set."""
        n, stayed = np.zeros((2, self.n_units), dtype=np.int64)
        for forced, keep, stays in self.pool:
            beyond = list(set(forced) - set(units))
            if len(beyond) <= 1 and len(forced) >= len(units):
                rows, columns = keep[:, list(units)].all(axis=1), beyond or slice(None)
                n[columns] += keep[rows].sum(axis=0)[columns]
                stayed[columns] += keep[rows & stays].sum(axis=0)[columns]
        return n, stayed

    def _grow(self, beam: list[Units]) -> list[Units]:
        """The best sets of one unit more, by KL-LUCB, the best first."""
        allowance, turn = max(8 * _PULL, (self.left - self.terms.budget // 5) // 6), 0
        end = self.n_masks + allowance
        for units in beam:
            lacking = min(_ENOUGH, self.terms.budget / 50) - float(np.median(self._counts(units)[0]))
            if lacking > 0 and self.left:
                self._draw([units], min(ceil(lacking / self.terms.presence), allowance, self.left))
        arms: dict[frozenset[int], Units] = {}
        for grown in ((*units, unit) for units in beam for unit in range(self.n_units) if unit not in units):
            arms.setdefault(frozenset(grown), grown)
        sets, parent = list(arms.values()), {units: number for number, units in enumerate(beam)}
        place = [parent[units[:-1]] for units in sets], [units[-1] for units in sets]
        while True:
            counts = np.array([self._counts(units) for units in beam])
            n, stayed = counts[:, 0][place], counts[:, 1][place]
            order = np.argsort(-(stayed + 1) / (n + 2), kind="stable")
            best, rest = np.split(order, [self.terms.beam_width])
            clear = self._needed(int(n[best[0]]), int(stayed[best[0]]), 0.0) < 200
            if clear or not len(rest) or self.n_masks + 2 * _PULL > min(end, self.n_masks + self.left):
                break
            turn += 1
            low, high = kl_bounds(stayed, n, exploration(len(sets), turn, _RISK))
            weakest, rival = int(best[np.argmin(low[best])]), int(rest[np.argmax(high[rest])])
            if high[rival] - low[weakest] <= _GAP:
                break
            pair = [sets[weakest], sets[rival]]
            common = tuple(unit for unit in pair[0] if unit in pair[1])
            # Samples of what two sets share serve both, and all their siblings.
            if len(common) == len(beam[0]) and self.terms.presence >= 0.5:
                self._draw([common], 2 * _PULL)
            else:
                self._draw(pair, _PULL)
        return [sets[arm] for arm in best.tolist()]

    def _gains(self, test: _Test) -> tuple[Float[np.ndarray, "step"], Float[np.ndarray, "step"]]:
        """What each unit added, with 95 % half-widths: the test's samples with the units added one by one."""
        units = list(test.units)
        # A sample needs one more mask for every unit that it lacked.
        n_masks = np.cumsum((~test.raw[:, units]).sum(axis=1))
        n = min(_MOST, int(np.searchsorted(n_masks, self.left, side="right")))
        path = np.repeat(test.raw[:n, None], len(units) + 1, axis=1)
        for step, unit in enumerate(units):
            path[:, step + 1 :, unit] = True
        stays = np.repeat(test.stays[:n, None], len(units) + 1, axis=1)
        row, step = np.nonzero(~path[:, :, units].all(axis=2))
        if n >= _FEWEST and len(row):
            stays[row, step], evaluated = self._stays(path[row, step])
            stays = stays[: row[~evaluated].min(initial=n)]
        moves = np.diff(stays.astype(int), axis=1)
        if len(moves) < _FEWEST:
            return self._gains_seen(test)
        n, up, down = len(moves), (moves > 0).sum(axis=0), (moves < 0).sum(axis=0)
        gains = (up - down) / n
        # Half a case is added to each of the four cells (Agresti & Min, 2005), so that no interval has width zero.
        spread = np.sqrt(up + down + 1 - (up - down) ** 2 / (n + 2)) / (n + 2)
        return gains, NORMAL_97_5 * spread + 2 * np.abs(gains) / (n + 2)

    def _gains_seen(self, test: _Test) -> tuple[Float[np.ndarray, "step"], Float[np.ndarray, "step"]]:
        """The same without further masks, from samples that chose the units; wide enough to hold for all sets."""
        n, stayed = np.array([*(self._counted(test.units[:size]) for size in range(len(test.units))), test.seen]).T
        level = exploration(self.n_units * self.terms.beam_width, max(1, len(self.pool)), 0.05)
        low, high = kl_bounds(stayed, n, level)
        steps = stayed / np.maximum(n, 1)
        off = np.maximum(high - steps, steps - low)
        return np.diff(steps), off[1:] + off[:-1]
