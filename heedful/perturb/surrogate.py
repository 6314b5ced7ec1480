"""Linear surrogates that LIME and Shapley sampling fit, with a 95 % confidence interval for each coefficient."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import erfc, sqrt
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.errors import BadInput
from heedful.perturb.masks import Draws
from heedful.statistics.intervals import NORMAL_97_5

_TOP = 5
_PORTION = 4096


@final
@dataclass(frozen=True)
class Surrogate:
    """A linear surrogate: one coefficient per unit, the half-width of its 95 % interval, intercept and weighted R²."""

    coefficients: Float[np.ndarray, "unit"]
    half_widths: Float[np.ndarray, "unit"]
    intercept: float
    r_squared: float
    effective_samples: float
    penalty_shift: float
    """The largest shift of a coefficient by the ridge; the intervals do not include it."""
    top_certainty: float
    """Lower bound of the probability that the five strongest units are correct: one minus that of every swap."""


def kernel(keep: Bool[np.ndarray, "mask unit"], width: float) -> Float[np.ndarray, "mask"]:
    """π of Eq. (15): exp(−δ²/2ν²), δ = 100 (1 − √(share of units kept)).

    δ is 100 times the cosine distance to the whole document, as in the official package; the paper omits the 100.
    """
    distance = 100 * (1 - np.sqrt(keep.mean(axis=1)))
    return np.exp(-(distance**2) / (2 * width**2))


def fit_lime(
    draws: Draws,
    values: Float[np.ndarray, "mask"],
    weights: Float[np.ndarray, "mask"],
    ridge: float,
    on_intercept: float = 0.0,
) -> Surrogate:
    """Weighted ridge regression, Eq. (16), with a free intercept as in scikit-learn's Ridge, or a ridge on it too.

    A ridge on the intercept is one more sample with that weight: no unit kept, and a value of 0. Intervals are for the
    coefficients that infinitely many samples of the same ridge per sample would give.
    """
    # A copy, as torch aligns its own memory and the last bit of a product can depend on alignment.
    y, pi = torch.from_numpy(values).clone(), torch.from_numpy(draws.mass * weights)
    total = pi.sum()
    centre = sum(pi[part] @ x for part, x in _rows(draws)) / total
    mean = pi @ y / total
    y = y - mean
    matrix, moment = _normal(draws, pi, y, centre)
    # A tiny ridge replaces none, since the matrix of too few samples is singular.
    free = _inverse(matrix, 1e-12 * float(matrix.diagonal().mean())) @ moment
    share = total / (total + on_intercept)
    pull = on_intercept * share
    inverse = _inverse(matrix + pull * centre[:, None] * centre, ridge)
    coefficients = inverse @ (moment + pull * mean * centre)
    intercept = share * (mean - centre @ coefficients)
    rest = mean - centre @ coefficients - intercept
    residuals = torch.cat([y[part] - (x - centre) @ coefficients for part, x in _rows(draws)]) + rest
    base = 1 / (total + on_intercept)
    half_widths, certainty = _certainty(draws, coefficients, residuals, pi, share * centre, inverse, base)
    spread = float(pi @ y**2)
    return Surrogate(
        coefficients=coefficients.numpy(),
        half_widths=half_widths,
        intercept=float(intercept),
        r_squared=1.0 - float(pi @ residuals**2) / spread if spread > 0 else 1.0,
        effective_samples=float(total**2 / (pi @ pi)),
        penalty_shift=float((coefficients - free).abs().max()),
        top_certainty=certainty,
    )


def fit_shapley(draws: Draws, values: Float[np.ndarray, "mask"]) -> Surrogate:
    """Least squares under the Shapley kernel with Σ_j φ_j = f(x) − f(empty) held exactly (Lundberg & Lee, 2017).

    The minimiser is M⁻¹(b − μ1), μ chosen for the constraint, M = Σ z zᵀ and b = Σ z (f(z) − f(empty)) over the drawn
    masks. Differs from the package `shap`: no mask is chosen by hand, no unit is selected, and there are intervals.
    """
    whole, empty = float(values[0]), float(values[1])
    drawn = Draws(draws.keep[2:], draws.mass[2:], draws.n_certain - 2, draws.paired)
    y, pi = torch.from_numpy(values[2:] - empty), torch.from_numpy(draws.mass[2:].copy())
    nowhere = torch.zeros(draws.keep.shape[1], dtype=torch.float64)
    matrix, moment = _normal(drawn, pi, y, nowhere)
    # What the masks leave open, as with two units, the constraint decides; a tiny ridge keeps the inverse finite.
    inverse = _inverse(matrix, 1e-12 * float(matrix.diagonal().mean()))
    line = inverse.sum(dim=1)
    projected = inverse - line[:, None] * line / line.sum()
    coefficients = projected @ moment + line * ((whole - empty) / line.sum())
    residuals = torch.cat([y[part] - x @ coefficients for part, x in _rows(drawn)])
    half_widths, certainty = _certainty(drawn, coefficients, residuals, pi, nowhere, projected, torch.zeros(()))
    spread = float(pi @ (y - (pi @ y) / pi.sum()) ** 2)
    return Surrogate(
        coefficients=coefficients.numpy(),
        half_widths=half_widths,
        intercept=empty,
        r_squared=1.0 - float(pi @ residuals**2) / spread if spread > 0 else 1.0,
        effective_samples=float(pi.sum() ** 2 / (pi @ pi)),
        penalty_shift=0.0,
        top_certainty=certainty,
    )


def _rows(draws: Draws) -> Iterator[tuple[slice, Float[Tensor, "_ unit"]]]:
    """The masks as floats, a few thousand at a time to bound memory; pairs are never separated."""
    n, size = draws.n_certain, _PORTION
    bounds = [*range(0, n, size), *range(n, len(draws.keep), size), len(draws.keep)]
    for start, end in pairwise(bounds):
        yield slice(start, end), torch.from_numpy(draws.keep[start:end]).double()


def _normal(
    draws: Draws, pi: Float[Tensor, "mask"], y: Float[Tensor, "mask"], centre: Float[Tensor, "unit"]
) -> tuple[Float[Tensor, "unit unit"], Float[Tensor, "unit"]]:
    """Σ π x xᵀ and Σ π x y, x less the centre."""
    d = draws.keep.shape[1]
    matrix, moment = centre.new_zeros(d, d), centre.new_zeros(d)
    for part, x in _rows(draws):
        weighted = (x - centre) * pi[part, None]
        matrix += (x - centre).T @ weighted
        moment += weighted.T @ y[part]
    return matrix, moment


def _certainty(
    draws: Draws,
    coefficients: Float[Tensor, "unit"],
    residuals: Float[Tensor, "mask"],
    pi: Float[Tensor, "mask"],
    centre: Float[Tensor, "unit"],
    inverse: Float[Tensor, "unit unit"],
    base: Float[Tensor, ""],
) -> tuple[Float[np.ndarray, "unit"], float]:
    """Half-widths of 95 % intervals, and the certainty of the five strongest units.

    The sandwich Σ_k s_k s_kᵀ, s_k = Σ_{i∈k} π_i e_i M⁻¹x_i over the pairs k of complements, or single masks (White,
    1980; Liang & Zeger, 1986), assumes neither that f is linear nor that its residuals have equal variance. Stratified
    sizes make neighbours similar, so the squares are of differences between neighbours. With few masks, residuals are
    too small and those of a fit without the pair (the jackknife, HC3) too large; e lies three quarters of the way
    between them, which covers 95 % from two masks a unit on (tests/perturb/test_coverage.py).
    """
    first, d = draws.n_certain, len(coefficients)
    if first == len(residuals):
        return np.zeros(d), 1.0
    order = np.argsort(-coefficients.abs().numpy(), kind="stable")
    strong = torch.from_numpy(order[:_TOP].copy())
    squares, cross = torch.zeros(d, dtype=torch.float64), torch.zeros(len(strong), d, dtype=torch.float64)
    n_steps, before = 0, None
    for part, x in _rows(draws):
        if part.start < first:
            continue
        influence = _influence(draws.paired, x - centre, pi[part], residuals[part], inverse, base)
        if draws.paired:
            joined = influence if before is None else torch.cat([before, influence])
            before, influence = joined[-1:], joined[1:] - joined[:-1]
            n_steps += len(influence)
        squares += influence.square().sum(dim=0)
        # Sums of products, not a matrix product: the same bytes wherever the memory lies.
        cross += torch.from_numpy(np.einsum("pk,pj->kj", influence[:, strong].numpy(), influence.numpy()))
    if draws.paired:
        scale = (n_steps + 1) / max(2 * n_steps, 1)
        squares, cross = squares * scale, cross * scale
    variance = squares.numpy()
    return NORMAL_97_5 * np.sqrt(variance), no_swap(coefficients.numpy(), variance, cross.numpy())


def _influence(
    paired: bool,
    x: Float[Tensor, "mask unit"],
    pi: Float[Tensor, "mask"],
    residuals: Float[Tensor, "mask"],
    inverse: Float[Tensor, "unit unit"],
    base: Float[Tensor, ""],
) -> Float[Tensor, "draw unit"]:
    """The influence of each mask, or pair of complements, on the coefficients."""
    pull = x @ inverse
    leverage = pi * ((pull * x).sum(dim=1) + base)
    if not paired:
        without = residuals / (1 - leverage).clamp(min=1e-6)
        return (pi * (0.25 * residuals + 0.75 * without))[:, None] * pull
    even, odd = slice(0, None, 2), slice(1, None, 2)
    cross = (pull[even] * x[odd]).sum(dim=1) + base
    a, b = (1 - leverage[even]), (1 - leverage[odd])
    determinant = (a * b - pi[even] * pi[odd] * cross**2).clamp(min=1e-6)
    without = residuals.clone()
    without[even] = (b * residuals[even] + pi[odd] * cross * residuals[odd]) / determinant
    without[odd] = (a * residuals[odd] + pi[even] * cross * residuals[even]) / determinant
    each = (pi * (0.25 * residuals + 0.75 * without))[:, None] * pull
    return each[even] + each[odd]


def no_swap(
    coefficients: Float[np.ndarray, "unit"],
    variance: Float[np.ndarray, "unit"],
    cross: Float[np.ndarray, "strong unit"] | None,
) -> float:
    """1 − Σ P(a weaker unit is truly stronger than one of the five strongest), normal, at least 0 (Bonferroni).

    `cross` is the covariance of the errors of the five, in their order, with all others; None means independent.
    """
    order = np.argsort(-np.abs(coefficients), kind="stable")
    strong, weak = order[:_TOP], order[_TOP:]
    spread = variance[strong][:, None] + variance[weak]
    if cross is not None:
        sign = np.sign(coefficients)
        spread = spread - 2 * cross[:, weak] * sign[strong][:, None] * sign[weak]
    ahead = np.abs(coefficients)[strong][:, None] - np.abs(coefficients)[weak]
    z = ahead / np.sqrt(np.maximum(spread, 1e-300))
    return max(0.0, 1.0 - float(sum(erfc(value / sqrt(2)) / 2 for value in z.ravel().tolist())))


def _inverse(matrix: Float[Tensor, "unit unit"], ridge: float) -> Float[Tensor, "unit unit"]:
    try:
        return torch.linalg.inv(matrix + ridge * torch.eye(len(matrix), dtype=matrix.dtype))
    except RuntimeError:
        raise BadInput("The regression is singular; raise `n_samples` or set `ridge` above 0.") from None
