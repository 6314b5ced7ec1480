"""Shapley values by permutation sampling: units are added one at a time, from the empty document to the whole."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.perturb.surrogate import Surrogate, no_swap
from heedful.statistics.intervals import student_97_5


@final
@dataclass(frozen=True)
class Walks:
    """Orders in which units are added, each followed by its reverse, and every unit's distance from the ends.

    Distances are stratified: [0, 1] is divided into as many equal strata as there are pairs, and every unit has one
    distance in each (Latin hypercube sampling: McKay, Beckman & Conover, 1979).
    """

    orders: Int[np.ndarray, "walk unit"]
    distances: Float[np.ndarray, "pair unit"]

    @staticmethod
    def draw(n_units: int, n_pairs: int, rng: np.random.Generator) -> "Walks":
        """Draws pairs of walks, each an order and its reverse."""
        stratum = rng.permuted(np.tile(np.arange(n_pairs), (n_units, 1)), axis=1).T
        distances = (stratum + rng.random((n_pairs, n_units))) / n_pairs
        early = rng.random((n_pairs, n_units)) < 0.5
        forth = np.argsort(np.where(early, distances / 2, 1 - distances / 2), axis=1)
        return Walks(np.stack([forth, forth[:, ::-1]], axis=1).reshape(2 * n_pairs, n_units), distances)

    def first(self, n_pairs: int) -> "Walks":
        """The first pairs of walks alone."""
        return Walks(self.orders[: 2 * n_pairs], self.distances[:n_pairs])

    @property
    def masks(self) -> Bool[np.ndarray, "mask unit"]:
        """The kept units after every step but the last, walk after walk."""
        n_walks, n_units = self.orders.shape
        rank = np.argsort(self.orders, axis=1)
        return (rank[:, None] <= np.arange(n_units - 1)[:, None]).reshape(n_walks * (n_units - 1), n_units)

    def gains(self, values: Float[np.ndarray, "mask"], whole: float, empty: float) -> Float[np.ndarray, "pair unit"]:
        """What f gained when each unit was added, averaged over a walk and its reverse."""
        n_walks = len(self.orders)
        start, end = np.full((n_walks, 1), empty), np.full((n_walks, 1), whole)
        path = np.concatenate([start, values.reshape(n_walks, -1), end], axis=1)
        gains = np.take_along_axis(np.diff(path, axis=1), np.argsort(self.orders, axis=1), axis=1)
        return (gains[0::2] + gains[1::2]) / 2


def mean_gain(
    rounds: list[tuple[Walks, Float[np.ndarray, "_ unit"]]],
    empty: float,
    keep: Bool[np.ndarray, "mask unit"],
    values: Float[np.ndarray, "mask"],
) -> Surrogate:
    """The mean of all gains, with Student's 95 % interval.

    A unit's gains in order of its distances come from neighbouring strata, so half the mean squared difference between
    neighbours is the variance that stratification leaves. Such differences overlap: n of them have about 2n/3 degrees
    of freedom. R² is that of f(empty) + Σ_j z_j φ_j on the last round's masks.
    """
    gains = np.concatenate([gain for _, gain in rounds])
    total, freedom = np.zeros(gains.shape[1]), 0.0
    for walks, gain in rounds:
        ordered = np.take_along_axis(gain, np.argsort(walks.distances, axis=0), axis=0)
        squares = np.diff(ordered, axis=0) ** 2 / 2
        total += len(gain) * (squares.mean(axis=0) + _pooled(squares)) / 2
        freedom += len(squares) * 2 / 3
    scores, variance = gains.mean(axis=0), total / len(gains) ** 2
    residuals, spread = values - empty - keep @ scores, float(np.var(values))
    return Surrogate(
        coefficients=scores,
        half_widths=student_97_5(freedom) * np.sqrt(variance),
        intercept=empty,
        r_squared=1.0 - float(np.mean(residuals**2)) / spread if spread > 0 else 1.0,
        effective_samples=2.0 * len(gains),
        penalty_shift=0.0,
        top_certainty=no_swap(scores, variance, None),
    )


def _pooled(squares: Float[np.ndarray, "square unit"]) -> Float[np.ndarray, "unit"]:
    """The mean squares under a model of rank one: (factor of the unit) × (factor of its position in the walk).

    A unit moves f most where it comes first. Few of its own walks show that; all units together do. The variance is the
    mean of this one and the unit's own: their intervals cover 95 % where those of either alone do not
    (tests/perturb/test_coverage.py).
    """
    of_unit = squares.sum(axis=0) + 1e-300
    for _ in range(5):
        of_place = (squares / of_unit).mean(axis=1) + 1e-300
        of_place /= of_place.sum()
        of_unit = (squares / of_place[:, None]).mean(axis=0) + 1e-300
    return of_unit / len(squares)
