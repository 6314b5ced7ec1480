"""LIME, Shapley and Banzhaf values of softmax attention, with no sampling.

E_p[f], the mean when every unit is removed independently with probability p, is a polynomial in p whose Bernstein
coefficients are the means given the *number* of removed units, which is what LIME draws; Shapley values are its
conditional slopes integrated over p (Owen, 1972).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil, inf
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.theory.game import Games, expectations

TIGHT = 1e-7
"""Below this tolerance the integral over λ is also computed more precisely."""


@final
@dataclass(frozen=True)
class Exact:
    """One value per unit for each game, and an error bound; nothing is sampled."""

    values: Float[Tensor, "game unit"]
    error: Float[np.ndarray, "game"]


def shapley(games: Games, tolerance: float = 1e-6) -> Exact:
    """Shapley_j = ∫_0^1 E_p[f | j kept] − E_p[f | j removed] dp.

    The integrand has degree d − 1 in p, so ⌈d/2⌉ Gauss–Legendre points are exact. Long games need far fewer, by Fejér's
    rule in a variable with more resolution near p = 1, where the integrand changes on a scale of 1/d. The error is the
    difference to the same points with polynomials of two degrees less.
    """

    def value(some: Games, n_points: int, exact: bool) -> tuple[Float[Tensor, "game unit"], Float[np.ndarray, "game"]]:
        p, weights = (torch.from_numpy(x).to(some.a) for x in _owen(n_points, exact))
        w = weights[:, None].expand(-1, len(some.n_units), -1)
        tight = exact or tolerance < TIGHT
        estimates = expectations(some, p, w, -w, tight)[0]
        return estimates[0], _gap(estimates) + 2 * some.quadrature_bound(tight)

    enough = np.ceil(games.n_units / 2).astype(int)
    return _refined(games, value, enough, 13, tolerance, enough)


def banzhaf(games: Games) -> Exact:
    """Banzhaf_j = E_p[f | j kept] − E_p[f | j removed] at p = 1/2: every set equally likely."""
    half = games.a.new_full((1,), 0.5)
    w = torch.ones_like(half).expand(1, len(games.n_units), 1)
    return Exact(expectations(games.centred(), half, w, -w)[0][0], 2 * games.quadrature_bound(tight=True))


def lime_limit(games: Games, tolerance: float = 1e-6) -> Exact:
    """`lime` for infinitely many samples, a flat kernel and no ridge: the limit that Eq. (17) describes."""
    return lime(games, inf, 0.0, 10**18, tolerance)


def lime(games: Games, kernel_width: float, ridge: float, n_samples: int, tolerance: float = 1e-6) -> Exact:
    """The solution of the expected normal equations of LIME's weighted ridge regression, Eqs. (15) and (16).

    The error is the difference to the same points with polynomials of two degrees less.
    """

    def value(some: Games, n_points: int, exact: bool) -> tuple[Float[Tensor, "game unit"], Float[np.ndarray, "game"]]:
        lines = [_line(int(d), kernel_width, ridge, n_samples, n_points) for d in some.n_units]
        p = torch.from_numpy(_gauss(n_points)[0]).to(some.a)
        laws = np.stack([line.weights for line in lines], axis=1)
        of_kept, of_all = torch.from_numpy(laws).to(p).unbind(dim=-1)
        tight = exact or tolerance < TIGHT
        kept, mean = expectations(some, p, of_kept, torch.zeros_like(of_kept), tight)
        gamma_0 = (of_all * mean).sum(dim=2)
        numbers = torch.from_numpy(np.array([line.entries for line in lines])).to(p)
        estimates = torch.stack([_solved(*sums, numbers, some.n_units) for sums in zip(kept, gamma_0, strict=True)])
        spread, rounding = np.array([(line.amplification, line.rounding) for line in lines]).T
        return estimates[0], (0.0 if exact else _gap(estimates)) + spread * some.quadrature_bound(tight, rounding)

    # E_p[f] has degree d, so d + 1 points tell it exactly; of a long text 4√d points leave 12 digits of a double.
    return _refined(
        games.centred(),
        value,
        games.n_units + 1,
        12,
        tolerance,
        np.where(games.n_units <= 26, games.n_units + 1, 4 * np.sqrt(games.n_units)),
    )


@final
@dataclass(frozen=True)
class _Line:
    """LIME's normal equations for d units, apart from f.

    A draw removes s units, s uniform on 1 … d; the whole document comes first and has mass 1/n. The weight depends on s
    alone, so the expected normal equations have three distinct entries, α_0, α_1 and α_2.
    """

    entries: tuple[float, float, float, float]
    """α_0, α_1, α_2 and the ridge for each sample."""
    weights: Float[np.ndarray, "rule point law"]
    """c with Σ_i c_i g(p_i) = γ, for γ_j (given that j is kept) and γ_0; by the fine and the coarser rule."""
    amplification: float
    """The largest change of a coefficient if every f(z) changes by at most one."""
    rounding: float
    """The relative change of f(z) by rounding of the weights."""


@cache
def _line(d: int, kernel_width: float, ridge: float, n_samples: int, n_points: int) -> _Line:
    """LIME's kernel, law of sizes and ridge as normal equations (docs/exact.md)."""
    s = np.arange(d + 1)
    pi = np.exp(-((100 * (1 - np.sqrt(1 - s / d))) ** 2) / (2 * kernel_width**2))
    smooth = pi * (n_samples - 1) / n_samples / d
    mass = np.concatenate([[1 / n_samples], smooth[1:]])
    # With nothing removed a centred f is zero whatever its mass; the mass that makes the law smooth needs fewer points.
    law = mass if n_points == d + 1 else smooth
    share = 1 - s / d
    (of_kept, _), (of_all, size) = (_bernstein_weights(n_points, by_size) for by_size in ((law * share)[:d], law))
    zero, one, two = mass.sum(), mass @ share, mass @ (share * (d - s - 1)) / (d - 1)
    penalty = ridge / n_samples
    spread = two - one**2 / zero
    # A kernel so sharp that nothing but the whole text weighs anything leaves zeros here, and no line.
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = d * (law @ share + one * law.sum() / zero) / abs(one + penalty - two + d * spread)
        moved = (law @ share + one * law.sum() / zero + abs(spread) * slope) / (one + penalty - two)
    entries = float(zero), float(one), float(two), penalty
    return _Line(entries, np.stack([of_kept, of_all], axis=-1), float(moved), 2e-16 * size)


def _solved(
    gamma: Float[Tensor, "game unit"],
    gamma_0: Float[Tensor, "game"],
    numbers: Float[Tensor, "game 4"],
    n_units: Int[np.ndarray, "game"],
) -> Float[Tensor, "game unit"]:
    """The exchangeable normal equations of LIME's linear surrogate, solved in closed form."""
    zero, one, two, penalty = numbers.unbind(dim=1)
    d = torch.from_numpy(n_units).to(gamma)
    inside = torch.arange(gamma.shape[1], device=gamma.device) < d[:, None]
    gamma = torch.where(inside, gamma, 0.0)
    slope = (gamma.sum(dim=1) - d * one * gamma_0 / zero) / (one + penalty - two + d * two - d * one**2 / zero)
    intercept = (gamma_0 - one * slope) / zero
    return (gamma - (one * intercept + two * slope)[:, None]) / (one + penalty - two)[:, None]


Value = Callable[[Games, int, bool], tuple[Float[Tensor, "game unit"], Float[np.ndarray, "game"]]]
"""The values of every game with a given number of points in p, exact or not, and their error bound."""


def _refined(
    games: Games,
    value: Value,
    enough: Int[np.ndarray, "game"],
    n_points: int,
    tolerance: float,
    most: Float[np.ndarray, "game"] | Int[np.ndarray, "game"],
) -> Exact:
    """The values with as many points in p as needed: their number grows by half until the error is small enough."""
    values, errors = torch.zeros_like(games.a[:, 0]), np.zeros(len(games.n_units))
    # Rounding of f itself, before it is centred.
    rounding = 1e-15 * games.whole.abs().cpu().numpy()
    games = games.centred()
    left = np.arange(len(enough))
    while len(left):
        few = enough[left] <= n_points
        groups = [(left[few & (enough[left] == count)], count, True) for count in np.unique(enough[left][few]).tolist()]
        for chosen, count, exact in (*groups, (left[~few], n_points, False)):
            if len(chosen):
                estimates, errors[chosen] = value(games.take(chosen), count, exact)
                values[torch.from_numpy(chosen).to(values.device), : estimates.shape[1]] = estimates
        n_points = ceil(1.5 * n_points)
        left = left[~few & (errors[left] > tolerance) & (n_points <= most[left])]
    return Exact(values, errors + rounding)


def _gap(estimates: Float[Tensor, "set game unit"]) -> Float[np.ndarray, "game"]:
    """The difference of the fine rule and the coarser one; zero if there is only one rule, which is exact."""
    return (estimates[0] - estimates[-1]).abs().amax(dim=1).cpu().numpy()


@cache
def _gauss(n_points: int) -> tuple[Float[np.ndarray, "point"], Float[np.ndarray, "point"]]:
    nodes, weights = np.polynomial.legendre.leggauss(n_points)
    return (nodes + 1) / 2, weights / 2


@cache
def _owen(n_points: int, exact: bool) -> tuple[Float[np.ndarray, "point"], Float[np.ndarray, "rule point"]]:
    """Points in p and weights for ∫_0^1 · dp: Gauss–Legendre if `exact`, else a fine and a coarser rule.

    The rules integrate the Chebyshev interpolant in t, p = (1−e^{−ct})/(1−e^{−c}) with c = 5/2, best near 200 units.
    """
    if exact:
        nodes, weights = _gauss(n_points)
        return nodes, weights[None]
    x = -np.cos(np.pi * (np.arange(n_points) + 0.5) / n_points)
    k = np.arange(n_points)
    integrals = np.where(k % 2 == 0, 2 / (1 - k**2 + (k == 1)), 0.0)
    # The interpolant's coefficients are 2/n Σ_i g(x_i) T_k(x_i), half of that at k = 0.
    terms = np.polynomial.chebyshev.chebvander(x, n_points - 1) * integrals * np.where(k == 0, 1, 2) / n_points
    c, t = 2.5, (x + 1) / 2
    speed = c * np.exp(-c * t) / -np.expm1(-c)
    weights = np.stack([terms.sum(axis=1), terms[:, :-2].sum(axis=1)]) / 2 * speed
    return np.expm1(-c * t) / np.expm1(-c), weights


def _bernstein_weights(n_points: int, by_size: Float[np.ndarray, "size"]) -> tuple[Float[np.ndarray, "2 point"], float]:
    """c with Σ_i c_i g(p_i) = Σ_s by_size[s] · (s-th Bernstein coefficient of g), for polynomials g of degree below n;
    in the second row of degree below n − 2.

    The Legendre polynomial P_k(2p−1) has as Bernstein coefficients of degree N the discrete Legendre polynomial
    t_k(0 … N), which obeys (k+1)(N−k) t_{k+1} = (2k+1)(2s−N) t_k − k(N+k+1) t_{k−1}. The largest |t_k| comes too: it
    grows past 1 when k passes about 1.5√N and to about 1,000 at 4√N, and so do rounding errors.
    """
    nodes, weights = _gauss(n_points)
    N = len(by_size) - 1
    s = np.arange(N + 1)
    legendre = np.polynomial.legendre.legvander(2 * nodes - 1, n_points - 1)
    before, now = np.zeros(N + 1), np.ones(N + 1)
    fine, rough, largest = np.zeros(n_points), np.zeros(n_points), 1.0
    for k in range(min(n_points, N + 1)):
        term = (2 * k + 1) * (now @ by_size) * legendre[:, k]
        fine += term
        rough += term if k < n_points - 2 else 0.0
        largest = max(largest, float(np.abs(now).max()))
        if k < N:
            before, now = now, ((2 * k + 1) * (2 * s - N) * now - k * (N + k + 1) * before) / ((k + 1) * (N - k))
    return np.stack([weights * fine, weights * rough]), largest
