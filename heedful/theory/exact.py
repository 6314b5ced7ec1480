"""Exact expectations of a softmax-attention layer whose units are removed at random, and what follows from them.

With unit j kept (z_j = 1) or replaced (z_j = 0) a head answers N(z)/D(z), both sums over units:

    D(z) = D_F + Σ_j [z_j a_j + (1−z_j) b_j]        N(z) = N_F + Σ_j [z_j A_j + (1−z_j) B_j]

As 1/D = ∫ e^{−λD} dλ, everything factorises over units when they are removed independently with probability p: one
one-dimensional integral gives E_p[f | j kept] and E_p[f | j removed] of every j. E_p is a polynomial in p whose
Bernstein coefficients are the expectations given the *number* of removed units, which is what LIME draws.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

_CELLS = 1 << 17


@final
@dataclass(frozen=True)
class Game:
    """a, b, A, B of every unit and the part that is never perturbed, for each head; f is the mean over heads."""

    a: Float[Tensor, "head unit"]
    b: Float[Tensor, "head unit"]
    A: Float[Tensor, "head unit"]
    B: Float[Tensor, "head unit"]
    D_F: Float[Tensor, "head"]
    N_F: Float[Tensor, "head"]

    def whole(self) -> float:
        """f with everything kept."""
        return float(((self.N_F + self.A.sum(dim=1)) / (self.D_F + self.a.sum(dim=1))).mean())

    def empty(self) -> float:
        """f with everything replaced."""
        return float(((self.N_F + self.B.sum(dim=1)) / (self.D_F + self.b.sum(dim=1))).mean())

    def centred(self, level: float) -> "Game":
        """The game of f − level, which leaves more digits for the differences that explanations are made of."""
        A, B, N_F = self.A - level * self.a, self.B - level * self.b, self.N_F - level * self.D_F
        return Game(self.a, self.b, A, B, self.D_F, N_F)


@final
@dataclass(frozen=True)
class Rule:
    """Nodes and weights for ∫_0^∞ g(λ) dλ, one row a head, and the largest relative error they make on any 1/D."""

    nodes: Float[Tensor, "head node"]
    weights: Float[Tensor, "head node"]
    bound: float


def laplace_rule(game: Game, step: float) -> Rule:
    """λ = exp(v − e^{−v})/D_max with the trapezoid rule in v, which converges exponentially over any range of D.

    The range of D over all sets is known, so the error on 1/D is not estimated but looked up over that range.
    """
    D_min = game.D_F + torch.minimum(game.a, game.b).sum(dim=1)
    D_max = game.D_F + torch.maximum(game.a, game.b).sum(dim=1)
    spread = float((D_max / D_min).max())
    v = torch.arange(-3.4, log(30 * spread) + step, step, dtype=torch.float64, device=game.a.device)
    nodes = torch.exp(v - torch.exp(-v))
    weights = (1 + torch.exp(-v)) * nodes * step
    D = torch.logspace(-log(spread) / log(10), 0, 200, dtype=torch.float64, device=game.a.device)
    bound = float((D * (torch.exp(-D[:, None] * nodes) @ weights) - 1).abs().max())
    return Rule(nodes / D_max[:, None], weights / D_max[:, None], bound)


def expectations(
    game: Game,
    rule: Rule,
    p: Float[Tensor, "point"],
    kept: Float[Tensor, "point"],
    gone: Float[Tensor, "point"],
) -> tuple[Float[Tensor, "unit"], Float[Tensor, "point"]]:
    """Σ_p kept(p) E_p[f | j kept] + gone(p) E_p[f | j removed] for every unit j, and E_p[f] for every p.

    With α_j = e^{−λ(a_j−m_j)}, β_j = e^{−λ(b_j−m_j)}, m = min(a, b), y_j = (1−p)α_j + pβ_j and W the rest of the
    integrand, the two conditional expectations differ from E_p[f] by ∓ multiples of
    ∫ W [ S (α_j−β_j)/y_j + (A_j−B_j) α_jβ_j/y_j² ] dλ, where S is the numerator's mean; no term is a difference of
    large numbers, and no factor exceeds one.
    """
    n_heads, n_units = game.a.shape
    low = torch.minimum(game.a, game.b)
    D_min, gap = game.D_F + low.sum(dim=1), game.A - game.B
    q = 1 - p
    tilt = kept * p - gone * q
    total, mean = torch.zeros_like(game.a[0]), torch.zeros_like(p)
    portion = max(1, _CELLS // (len(p) * n_units))
    for head in range(n_heads):
        for nodes, weights in zip(rule.nodes[head].split(portion), rule.weights[head].split(portion), strict=True):
            alpha = torch.exp(-nodes[:, None] * (game.a - low)[head])
            beta = torch.exp(-nodes[:, None] * (game.b - low)[head])
            y = q[:, None] * alpha[:, None] + p[:, None] * beta[:, None]
            W = (weights * torch.exp(-nodes * D_min[head]))[:, None] * y.prod(dim=-1)
            r = y.reciprocal_()
            of_kept, of_gone = (r @ torch.stack([alpha * game.A[head], beta * game.B[head]], dim=-1)).unbind(dim=-1)
            S = game.N_F[head] + q * of_kept + p * of_gone
            mean += (W * S).sum(dim=0)
            first = ((tilt * W * S)[:, None] @ r).squeeze(1)
            second = ((tilt * W)[:, None] @ r.square_()).squeeze(1)
            total += (first * (alpha - beta)).sum(dim=0) + gap[head] * (second * alpha * beta).sum(dim=0)
    return (total + ((kept + gone) * mean).sum()) / n_heads, mean / n_heads


@final
@dataclass(frozen=True)
class Exact:
    """One number a unit, and how far the quadrature can be off; nothing is sampled."""

    values: Float[Tensor, "unit"]
    error: float


def shapley(game: Game) -> Exact:
    """Shapley_j = ∫_0^1 E_p[f | j kept] − E_p[f | j removed] dp (Owen, 1972), the integrand of degree d − 1 in p."""
    n_units = game.a.shape[1]
    exact = ceil(n_units / 2)
    fine = min(exact, _n_points(n_units))

    def value(step: float, n_points: int) -> tuple[Float[Tensor, "unit"], float]:
        rule = laplace_rule(game, step)
        p, w = _gauss(n_points, game)
        return expectations(centred, rule, p, w, -w)[0], rule.bound

    centred = game.centred(game.whole())
    return _checked(game, value, fine, fine if fine == exact else fine - 4)


def banzhaf(game: Game) -> Exact:
    """Banzhaf_j = E_p[f | j kept] − E_p[f | j removed] at p = 1/2: every set equally likely."""
    half = torch.full_like(game.D_F[:1], 0.5)
    centred = game.centred(game.whole())

    def value(step: float, _: int) -> tuple[Float[Tensor, "unit"], float]:
        rule = laplace_rule(game, step)
        return expectations(centred, rule, half, 2 * half, -2 * half)[0], rule.bound

    return _checked(game, value, 1, 1)


def lime(game: Game, kernel_width: float, ridge: float, n_samples: int) -> Exact:
    """The coefficients that LIME's weighted ridge regression has in expectation, Eqs. (15) and (16).

    A draw removes s units, s uniform on 1 … d; the whole document comes first and has mass 1/n. The weight depends on s
    alone, so the expected normal equations have three distinct entries and are solved by hand.
    """
    d = game.a.shape[1]
    s = np.arange(d + 1)
    delta = 100 * (1 - np.sqrt(1 - s / d))
    mass = np.exp(-(delta**2) / (2 * kernel_width**2)) * np.where(
        s == 0, 1 / n_samples, (n_samples - 1) / n_samples / d
    )
    one, two = mass @ (d - s) / d, mass @ ((d - s) * (d - s - 1)) / (d * max(d - 1, 1))
    centred = game.centred(game.whole())

    def value(step: float, n_points: int) -> tuple[Float[Tensor, "unit"], float]:
        rule = laplace_rule(game, step)
        p, _ = _gauss(n_points, game)
        of_kept = _bernstein_weights(n_points, (mass * (d - s) / d)[:d])
        of_all = _bernstein_weights(n_points, mass)
        kept, mean = expectations(centred, rule, p, torch.from_numpy(of_kept).to(p), torch.zeros_like(p))
        gamma, gamma_0 = kept, float(torch.from_numpy(of_all).to(p) @ mean)
        penalty, zero = ridge / n_samples, mass.sum()
        slope = float(gamma.sum() - d * one * gamma_0 / zero) / (one + penalty - two + d * two - d * one**2 / zero)
        intercept = (gamma_0 - one * slope) / zero
        return (gamma - one * intercept - two * slope) / (one + penalty - two), rule.bound

    # E_p[f] has degree d, so d + 1 points tell it exactly.
    fine = min(d + 1, _n_points(d))
    return _checked(game, value, fine, fine if fine == d + 1 else fine - 4)


def _checked(
    game: Game, value: Callable[[float, int], tuple[Float[Tensor, "unit"], float]], fine: int, coarse: int
) -> Exact:
    """The value by the fine rule, and as its error the gap to a coarser one and the bound of the integral over λ."""
    best, bound = value(0.3, fine)
    rough, _ = value(0.36, coarse)
    size = float((game.A.abs() / game.a.clamp(min=1e-300)).max())
    return Exact(best, float((best - rough).abs().max()) + bound * size)


def _n_points(n_units: int) -> int:
    # E_p changes fastest near p = 1, over a stretch of 1/d, where Gauss nodes are 1/n² apart.
    return 12 + ceil(sqrt(n_units))


def _gauss(n_points: int, game: Game) -> tuple[Float[Tensor, "point"], Float[Tensor, "point"]]:
    nodes, weights = np.polynomial.legendre.leggauss(n_points)
    return torch.from_numpy((nodes + 1) / 2).to(game.a), torch.from_numpy(weights / 2).to(game.a)


def _bernstein_weights(n_points: int, by_size: Float[np.ndarray, "size"]) -> Float[np.ndarray, "point"]:
    """c with Σ_i c_i g(p_i) = Σ_s by_size[s] · (s-th Bernstein coefficient of g), for polynomials g of degree below n.

    The Legendre polynomial P_k(2p−1) has as Bernstein coefficients of degree N the discrete Legendre polynomial
    t_k(0 … N), which obeys (k+1)(N−k) t_{k+1} = (2k+1)(2s−N) t_k − k(N+k+1) t_{k−1}.
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_points)
    N = len(by_size) - 1
    s = np.arange(N + 1)
    legendre = np.polynomial.legendre.legvander(nodes, n_points - 1)
    before, now = np.zeros(N + 1), np.ones(N + 1)
    total = np.zeros(n_points)
    for k in range(min(n_points, N + 1)):
        total += (2 * k + 1) * (now @ by_size) * legendre[:, k]
        if k < N:
            before, now = now, ((2 * k + 1) * (2 * s - N) * now - k * (N + k + 1) * before) / ((k + 1) * (N - k))
    return weights / 2 * total
