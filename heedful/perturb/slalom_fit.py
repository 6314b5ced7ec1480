"""The surrogate of SLALOM: one softmax over the kept units, fitted to the values of f on masks."""

from dataclasses import dataclass
from math import exp, sqrt
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.perturb.masks import Draws
from heedful.statistics.intervals import student_97_5

_FOLDS = 10
_STEPS, _STEPS_OF_A_FOLD = 100, 4
_STARTS = 12
"""Random starts beside the first if every possible mask was evaluated. For many drawn masks the first is enough."""
_START_SPREAD, _EXACT, _EQUALLY = 1.5, 1e-12, 1e-4
_CHI_SQUARED = 3.84
"""Its 95 % quantile with one degree of freedom."""
_ENOUGH = 1e-6
_WEAKER = 0.01
_SPREAD_S, _SPREAD_V = 1.0, sqrt(10.0)
"""Standard deviations of the normal prior: of importances, and of values in standard deviations of f."""


@final
@dataclass(frozen=True)
class Softmax:
    """f(z) ≈ Σ_k m_k e^{s_k} v_k / Σ_k m_k e^{s_k} over the units, m = z, and a last part for the rest of the input.

    If removed units leave a replacement, the last part is that replacement and counts once for every removed unit. Else
    it is the special tokens and counts once. Either way f(empty) is its value. Row 0 is the fit. If masks were drawn,
    the next `n_folds` rows are fits without one fold of them each. Then come a fit to all masks with a weak prior, and
    other optima that fit about as well.
    """

    s: Float[np.ndarray, "fit part"]
    v: Float[np.ndarray, "fit part"]
    leaves: bool
    """Whether a replacement is left where a unit is removed."""
    r_squared: float
    """On masks held out of the fit; on all masks, if all possible ones are too few to hold any out."""
    n_folds: int

    @property
    def n_others(self) -> int:
        """How many other optima fit about as well."""
        return len(self.s) - 2 - self.n_folds

    @property
    def empty(self) -> float:
        """The surrogate's value with every unit removed."""
        return float(self.v[0, -1])

    @property
    def importances(self) -> Float[np.ndarray, "fit unit"]:
        """s less its mean over the units, as in the paper: a constant added to every s changes nothing."""
        units = self.s[:, :-1]
        return units - units.mean(axis=1, keepdims=True)

    @property
    def shares(self) -> Float[np.ndarray, "fit unit"]:
        """The share of each unit in f(x) − f(empty): α_j (v_j − f(empty)), α the softmax of the whole document."""
        g = np.exp(self.s - self.s.max(axis=1, keepdims=True))
        total = g[:, :-1].sum(axis=1, keepdims=True) + (0.0 if self.leaves else g[:, -1:])
        return g[:, :-1] / total * (self.v[:, :-1] - self.v[:, -1:])

    def with_errors(
        self, rows: Float[np.ndarray, "fit unit"]
    ) -> tuple[Float[np.ndarray, "unit"], Float[np.ndarray, "unit"]]:
        """The first row, and 95 % half-widths: the jackknife's over folds, the shift by the prior, and other optima."""
        folds, weak_prior, others = np.split(rows[1:], [self.n_folds, self.n_folds + 1])
        error = np.abs(weak_prior[0] - rows[0]) + np.abs(others - rows[0]).max(axis=0, initial=0.0)
        if self.n_folds:
            n = self.n_folds
            error = error + student_97_5(n - 1.0) * np.sqrt(n - 1) * folds.std(axis=0)
        return rows[0], error


def fit_softmax(draws: Draws, values: Float[np.ndarray, "mask"], leaves: bool) -> Softmax:
    """Least squares by Levenberg–Marquardt steps from several starts, and again without each of ten folds of the masks.

    A normal prior decides what the masks leave open; its strength is that of noise as large as the residuals, so it has
    none where the surrogate is exact. With such noise an optimum is distinguishable from the best one if n times the
    logarithm of the ratio of their residual variances exceeds 3.84. A fold holds masks of all sizes, and both masks of
    a pair of complements.
    """
    keep = torch.from_numpy(draws.keep)
    last = (~keep).sum(dim=1) if leaves else torch.ones(len(keep))
    m = torch.cat([keep.double(), last.double()[:, None]], dim=1)
    w = torch.from_numpy(draws.mass / draws.mass.sum())
    level = float(w @ torch.from_numpy(values).clone())
    y = torch.from_numpy(values - level)
    scale = sqrt(float(w @ y**2))
    if scale <= 1e-12 * max(1.0, abs(level)):
        size = 2, m.shape[1]
        return Softmax(np.zeros(size), np.full(size, level), leaves, 1.0, 0)
    y = y / scale
    deviations = torch.tensor([_SPREAD_S, _SPREAD_V]).double().repeat_interleave(m.shape[1])
    sampled = draws.n_certain < len(m)
    # All possible masks have no noise of sampling, so their prior is weak from the beginning.
    prior = (1 if sampled else _WEAKER) / (len(m) * deviations**2)
    best, *others = _optima(m, y, w, prior, 0 if sampled else _STARTS)
    weak_prior = _descend(m, y, w, *best, _WEAKER * prior, 2 * _STEPS_OF_A_FOLD if sampled else _STEPS)
    folds, r_squared = _without_folds(m, y, w, best, prior, _folds(draws), sampled)
    fits = [best, *(folds if sampled else ()), weak_prior, *others]
    s, v = (torch.stack(part).numpy() for part in zip(*fits, strict=True))
    return Softmax(s, level + scale * v, leaves, r_squared, len(folds) if sampled else 0)


Fit = tuple[Float[Tensor, "part"], Float[Tensor, "part"]]


def _optima(
    m: Float[Tensor, "mask part"], y: Float[Tensor, "mask"], w: Float[Tensor, "mask"], prior: Tensor, n_starts: int
) -> list[Fit]:
    """The best fit of all starts, and the others that are not distinguishable from it."""
    generator = torch.Generator().manual_seed(0)
    fits = [_descend(m, y, w, *_start(m, y, w), prior, _STEPS)]
    for _ in range(n_starts if _loss(m, y, w, *fits[0]) > _EXACT else 0):
        s = _START_SPREAD * torch.randn(m.shape[1], generator=generator, dtype=torch.float64)
        fits.append(_descend(m, y, w, s, _values(m, y, w, s), prior, _STEPS))
    losses = [max(_loss(m, y, w, *fit), 1e-16) * (1 + float(prior @ torch.cat(fit) ** 2)) for fit in fits]
    # The first of equally good ones, so that rounding does not choose.
    best = next(n for n, loss in enumerate(losses) if loss <= (1 + _EQUALLY) * min(losses))
    limit = losses[best] * exp(_CHI_SQUARED / len(m))
    return [fits[best], *(fit for n, fit in enumerate(fits) if n != best and losses[n] <= limit)]


def _without_folds(
    m: Float[Tensor, "mask part"],
    y: Float[Tensor, "mask"],
    w: Float[Tensor, "mask"],
    fit: Fit,
    prior: Float[Tensor, "both"],
    fold: Int[Tensor, "mask"],
    sampled: bool,
) -> tuple[list[Fit], float]:
    """The fits without one fold of the masks each, and R² on the masks left out; those of fold −1 never are."""
    left_out, n_folds = fold >= 0, int(fold.max()) + 1
    fits, error, spread = [], 0.0, 0.0
    for number in range(n_folds):
        inside = fold != number
        rescaled = float(w[left_out].sum() / w[left_out & inside].sum())
        weight = torch.where(left_out, rescaled * w, w)[inside]
        steps = _STEPS_OF_A_FOLD if sampled else _STEPS
        fits.append(_descend(m[inside], y[inside], weight, *fit, prior, steps))
        gap = _attention(m[~inside], fits[-1][0]) @ fits[-1][1] - y[~inside]
        error += float(w[~inside] @ gap**2)
        spread += float(w[~inside] @ y[~inside] ** 2)
    if not n_folds:
        error, spread = _loss(m, y, w, *fit), 1.0
    return fits, 1.0 - error / spread


def _folds(draws: Draws) -> Int[Tensor, "mask"]:
    """The fold of every drawn mask, −1 for masks that are certain; neighbours in size go to different folds.

    If every possible mask is certain, all have a fold, unless fewer would be left than there are unknowns.
    """
    n_certain, step, (n_masks, n_units) = draws.n_certain, 2, draws.keep.shape
    if n_certain == n_masks:
        if n_masks - n_masks / _FOLDS < 2 * (n_units + 1):
            return torch.full((n_masks,), -1)
        n_certain, step = 0, 1
    sizes = draws.keep[n_certain::step].sum(axis=1)
    of_pair = np.empty(len(sizes), dtype=np.int64)
    of_pair[np.argsort(sizes, kind="stable")] = np.arange(len(sizes)) % min(_FOLDS, len(sizes))
    return torch.from_numpy(np.concatenate([np.full(n_certain, -1), of_pair.repeat(step)]))


def _attention(m: Float[Tensor, "mask part"], s: Float[Tensor, "part"]) -> Float[Tensor, "mask part"]:
    g = m * (s - s.max()).exp()
    return g / g.sum(dim=1, keepdim=True)


def _values(
    m: Float[Tensor, "mask part"], y: Float[Tensor, "mask"], w: Float[Tensor, "mask"], s: Float[Tensor, "part"]
) -> Float[Tensor, "part"]:
    """The values that fit best with these importances."""
    alpha = _attention(m, s)
    normal = alpha.T @ (alpha * w[:, None])
    normal.diagonal().add_(1e-9)
    return torch.linalg.solve(normal, alpha.T @ (w * y))


def _start(
    m: Float[Tensor, "mask part"], y: Float[Tensor, "mask"], w: Float[Tensor, "mask"]
) -> tuple[Float[Tensor, "part"], Float[Tensor, "part"]]:
    """The starting point: N(z) = f(z) D(z) is linear in the unknowns (Levy, 1959; Sanathanan & Koerner, 1963).

    If the surrogate can be exact, this is already the solution.
    """
    n_parts = m.shape[1]
    rows = torch.cat([-y[:, None] * m, m], dim=1)
    mean_D = torch.cat([w @ m, torch.zeros(n_parts).double()])
    D = torch.ones_like(y)
    lowest, best = float("inf"), None
    for _ in range(3):
        matrix = rows.T @ (rows * (w / D**2)[:, None])
        matrix.diagonal().add_(1e-13 * float(matrix.diagonal().mean()))
        solution = torch.linalg.solve(matrix, mean_D)
        g = (solution / (mean_D @ solution))[:n_parts]
        # The logarithm needs positive weights.
        g = g.clamp(min=1e-4 * float(g.abs().mean()))
        s, D = g.log(), m @ g
        v = _values(m, y, w, s)
        loss = _loss(m, y, w, s, v)
        if loss < lowest:
            lowest, best = loss, (s - s.mean(), v)
    assert best is not None
    return best


def _descend(
    m: Float[Tensor, "mask part"],
    y: Float[Tensor, "mask"],
    w: Float[Tensor, "mask"],
    s: Float[Tensor, "part"],
    v: Float[Tensor, "part"],
    prior: Float[Tensor, "both"],
    n_steps: int,
) -> tuple[Float[Tensor, "part"], Float[Tensor, "part"]]:
    """At most `n_steps` damped Gauss–Newton steps, until a step improves the fit by less than a millionth."""
    damping, loss = 1e-3, _loss(m, y, w, s, v)
    for _ in range(n_steps):
        pull = max(loss, 1e-16) * prior
        alpha = _attention(m, s)
        f, here = alpha @ v, torch.cat([s, v])
        slopes = torch.cat([alpha * (v - f[:, None]), alpha], dim=1)
        matrix = slopes.T @ (slopes * w[:, None]) + pull.diag()
        gradient = slopes.T @ (w * (f - y)) + pull * here
        before = loss + float(pull @ here**2)
        for _ in range(10):
            new_s, new_v = _step(matrix, gradient, damping, s, v)
            new_loss = _loss(m, y, w, new_s, new_v)
            gain = before - new_loss - float(pull @ torch.cat([new_s, new_v]) ** 2)
            if gain > 0:
                break
            damping *= 4
        else:
            break
        s, v, loss = new_s - new_s.mean(), new_v, new_loss
        damping = max(damping / 5, 1e-14)
        if gain <= _ENOUGH * before:
            break
    return s, v


def _loss(
    m: Float[Tensor, "mask part"],
    y: Float[Tensor, "mask"],
    w: Float[Tensor, "mask"],
    s: Float[Tensor, "part"],
    v: Float[Tensor, "part"],
) -> float:
    return float(w @ (_attention(m, s) @ v - y) ** 2)


def _step(
    matrix: Float[Tensor, "both both"],
    gradient: Float[Tensor, "both"],
    damping: float,
    s: Float[Tensor, "part"],
    v: Float[Tensor, "part"],
) -> tuple[Float[Tensor, "part"], Float[Tensor, "part"]]:
    """One damped step; s moves by at most two, because the linearisation is not valid further away."""
    step = torch.linalg.solve(matrix + (damping * matrix.diagonal()).diag(), gradient)
    return s - step[: len(s)].clamp(-2, 2), v - step[len(s) :]
