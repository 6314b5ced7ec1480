from itertools import combinations, pairwise
from math import comb, exp, log

import numpy as np
import pytest

from heedful.perturb.anchor_search import Search, Terms, exploration, kl_bounds, lower_bound
from heedful.perturb.sweep import Interrupted
from tests.conftest import WORDS

TERMS = Terms(precision=0.95, confidence=0.95, presence=0.5, beam_width=2, budget=3000)


class Vote:
    """The output stays if the kept units weigh more than `bar`: the precision of every set can be computed."""

    def __init__(self, weights, bar, presence=0.5, until=None):
        self.weights, self.bar, self.presence, self.until = np.array(weights), bar, presence, until
        self.evaluated = set()

    def __call__(self, keep):
        stays = keep @ self.weights > self.bar
        self.evaluated |= {row.tobytes() for row in keep[: self.until]}
        if self.until is not None:
            evaluated = np.arange(len(keep)) < self.until
            self.until -= int(evaluated.sum())
            if not evaluated.all():
                raise Interrupted(np.where(evaluated, stays, 0).astype(float), evaluated)
        return stays

    def precision(self, held):
        """By adding up weights one unit after another, each there or not."""
        total = {int(self.weights[list(held)].sum()): 1.0}
        for unit in set(range(len(self.weights))) - set(held):
            more = {}
            for weight, probability in total.items():
                for there, share in ((0, 1 - self.presence), (int(self.weights[unit]), self.presence)):
                    more[weight + there] = more.get(weight + there, 0.0) + share * probability
            total = more
        return sum(probability for weight, probability in total.items() if weight > self.bar)


def vote(seed, n_units=24):
    weights = np.random.default_rng(seed).geometric(0.2, n_units) * np.random.default_rng(seed).choice([-1, 1], n_units)
    return Vote(np.where(weights.sum() > 0, weights, -weights), 0)


def binomial(n, p):
    return np.array([comb(n, s) * p**s * (1 - p) ** (n - s) for s in range(n + 1)])


@pytest.mark.parametrize("n", [1, 7, 40, 150])
@pytest.mark.parametrize("level", [log(20), log(200)])
def test_kl_bounds_fail_as_seldom_as_they_say(n, level):
    low, high = kl_bounds(np.arange(n + 1), np.full(n + 1, n), level)
    assert ((low <= np.arange(n + 1) / n) & (np.arange(n + 1) / n <= high)).all()
    for p in np.linspace(0.01, 0.99, 50):
        probabilities = binomial(n, p)
        assert probabilities[low > p].sum() <= exp(-level) + 1e-12
        assert probabilities[high < p].sum() <= exp(-level) + 1e-12


def test_kl_bounds_are_the_ends_of_the_interval_that_a_fine_grid_finds():
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    for stayed, n, level in ((0, 5, 2.0), (3, 10, 1.0), (95, 100, 3.0), (40, 40, 4.0)):
        mean = stayed / n
        first = mean * np.log(mean / grid) if mean else 0 * grid
        second = (1 - mean) * np.log((1 - mean) / (1 - grid)) if mean < 1 else 0 * grid
        within = grid[n * (first + second) <= level]
        low, high = kl_bounds(np.array([stayed]), np.array([n]), level)
        assert low[0] == pytest.approx(within.min(), abs=1e-5)
        assert high[0] == pytest.approx(within.max(), abs=1e-5)


def test_a_set_without_samples_may_have_any_precision():
    low, high = kl_bounds(np.array([0]), np.array([0]), 3.0)
    assert (low[0], high[0]) == (0.0, 1.0)
    assert lower_bound(0, 0, 0.05) < 1e-9


def test_exploration_grows_with_arms_turns_and_certainty():
    assert exploration(10, 1, 0.1) < exploration(20, 1, 0.1) < exploration(20, 5, 0.1) < exploration(20, 5, 0.01)


@pytest.mark.parametrize(("p", "risk"), [(0.95, 0.05), (0.95, 0.01), (0.6, 0.05), (0.2, 0.1)])
def test_the_lower_bound_holds_at_all_times_together(p, risk):
    """The probability that it is ever above the truth in 300 tosses, added up toss by toss."""
    alive, failed = {0: 1.0}, 0.0
    for n in range(1, 301):
        after = {}
        for stayed, probability in alive.items():
            for more, share in ((0, 1 - p), (1, p)):
                after[stayed + more] = after.get(stayed + more, 0.0) + share * probability
        alive = {}
        for stayed, probability in after.items():
            if probability < 1e-9:
                continue
            if stayed / n > p and lower_bound(stayed, n, risk) > p:
                failed += probability
            else:
                alive[stayed] = probability
    assert 0 < failed <= risk


def test_the_lower_bound_is_not_far_below_the_best_one():
    for stayed, n in ((400, 400), (980, 1000), (60, 100)):
        low, best = 0.0, 1.0
        for _ in range(20):
            middle = (low + best) / 2
            low, best = (middle, best) if binomial(n, middle)[stayed:].sum() <= 0.025 else (low, middle)
        assert best - 0.06 * np.sqrt(100 / n) <= lower_bound(stayed, n, 0.025) < best


def test_shared_samples_have_the_law_of_every_set_that_they_keep():
    game = vote(3, 12)
    search = Search(12, game, TERMS, np.random.default_rng(0))
    search._draw([(2, 7)], 4000)
    search._draw([(2, 7, 5), (2, 9)], 500)
    n, stayed = search._counts((2, 7))
    for unit in set(range(12)) - {2, 7}:
        truth = game.precision((2, 7, unit))
        assert n[unit] > 1800
        assert abs(stayed[unit] / n[unit] - truth) <= 4 * np.sqrt(truth * (1 - truth) / n[unit]) + 1e-9
    assert n[5] > 2200
    assert search._counted((2, 9)) == search._counted((9, 2))
    assert search._counted((2, 9))[0] == 500


@pytest.mark.slow
def test_guarantees_hold_and_intervals_of_gains_cover():
    promised = broken = covered = gains = units = 0
    for seed in range(60):
        game = vote(seed)
        anchor = Search(24, game, TERMS, np.random.default_rng(seed)).run()
        path = [game.precision(anchor.units[:size]) for size in range(len(anchor.units) + 1)]
        broken += anchor.lower > path[-1]
        promised += anchor.lower >= TERMS.precision
        true = np.diff(path)
        covered += int((np.abs(anchor.gains - true) <= anchor.errors).sum())
        gains, units = gains + len(true), units + len(anchor.units)
        assert anchor.base + anchor.gains.sum() == pytest.approx(anchor.precision)
        assert len(game.evaluated) <= TERMS.budget
    assert broken <= 3
    assert promised >= 54
    assert units >= 60
    assert covered >= 0.92 * gains


@pytest.mark.parametrize("budget", [100, 101, 160, 170, 500])
@pytest.mark.parametrize("presence", [0.2, 0.5, 0.9])
def test_the_budget_is_never_exceeded(budget, presence):
    for seed in range(4):
        game = vote(seed, 40)
        game.presence = presence
        search = Search(40, game, Terms(0.9, 0.9, presence, 2, budget), np.random.default_rng(seed))
        anchor = search.run()
        assert len(game.evaluated) <= search.n_masks <= budget
        assert 0 <= anchor.lower <= anchor.precision <= 1
        assert anchor.lower <= game.precision(anchor.units) + 1e-9


@pytest.mark.parametrize("until", [25, 150, 390, 450, 700, 1000, 1100, 1200])
def test_who_stops_the_search_gets_a_bound_that_holds(until):
    fair = 0
    for seed in range(6):
        game = vote(seed)
        game.until = until
        anchor = Search(24, game, TERMS, np.random.default_rng(seed)).run()
        if anchor.n_fresh < 20:
            continue
        fair += anchor.lower <= game.precision(anchor.units)
        assert np.isfinite(anchor.gains).all()
        true = np.diff([game.precision(anchor.units[:size]) for size in range(len(anchor.units) + 1)])
        if anchor.stopped:
            assert (np.abs(anchor.gains - true) <= anchor.errors).all()
    assert fair >= 5


def brute_precisions(stays, n_units):
    """Of every set, from its definition."""
    masks = (np.arange(2**n_units)[:, None] >> np.arange(n_units)) & 1 == 1
    return {
        held: stays[masks[:, list(held)].all(axis=1)].mean()
        for size in range(n_units + 1)
        for held in combinations(range(n_units), size)
    }


def test_on_the_single_layer_model_the_search_finds_what_all_sets_show(tiny):
    sizes, bits = [], 2 ** np.arange(8)
    for seed in range(16):
        words = np.random.default_rng(seed).choice(WORDS, 8, replace=False)
        kept = (np.arange(256)[:, None] >> np.arange(8)) & 1 == 1
        logits = tiny([" ".join(np.where(row, words, "neverseen")) for row in kept])
        stays = logits.argmax(axis=1) == logits[-1].argmax()
        precisions = brute_precisions(stays, 8)
        anchor = Search(8, lambda keep, s=stays: s[keep @ bits], TERMS, np.random.default_rng(seed)).run()
        truth = precisions[tuple(sorted(anchor.units))]
        assert anchor.lower >= TERMS.precision
        assert truth >= TERMS.precision
        smaller = [p for held, p in precisions.items() if len(held) < len(anchor.units)]
        assert max(smaller, default=0.0) < TERMS.precision + 0.03
        sizes.append(len(anchor.units))
    assert sum(size > 0 for size in sizes) >= 8
    assert len(set(sizes)) >= 3


def test_the_units_are_in_the_order_in_which_they_raise_the_precision():
    game = Vote([9, 7, 1, 1, -1, -1, 1, -1, 1, -1, 1, -1], 10)
    anchor = Search(12, game, TERMS, np.random.default_rng(0)).run()
    assert anchor.units == (0, 1)
    assert all(a < b for a, b in pairwise([game.precision(anchor.units[:size]) for size in range(3)]))
