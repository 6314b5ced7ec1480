"""A linear surrogate from few masks: its matrix follows from the law of the masks, so one mean per unit is estimated.

A regression needs more masks than units. Here none is solved: under a law of sizes the covariance Σ of the masks is
known, and β = Σ⁻¹ E[z̃ f] (for Shapley values: Covert & Lee, 2021, arXiv:2012.01536, "unbiased KernelSHAP"). The mean
is taken over pairs of complements. Its variance is reduced by a control variate: a guess at f whose own mean is known.
The guess is linear in the gradients between baseline and text. Without gradients, or with enough masks, a ridge
regression on the masks of the other folds is added. The estimate is unbiased however bad the guess; a good guess makes
it precise.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.perturb.size_law import KnownLaw
from heedful.perturb.surrogate import Surrogate, no_swap
from heedful.statistics.intervals import student_97_5

_FOLDS, _TREND = 8, 4
_ENOUGH = 2
"""From this many masks per unit on, a ridge regression improves the approximation from gradients."""
_WIDEST = 1500
"""Above this number of units a ridge regression costs more than it saves."""


@final
@dataclass(frozen=True, eq=False)
class Estimate:
    """An unbiased estimate of every score from each pair of masks; the scores are the means over pairs."""

    terms: Float[np.ndarray, "pair unit"]
    intercept: float
    r_squared: float
    penalty_shift: float

    @property
    def scores(self) -> Float[np.ndarray, "unit"]:
        """The estimated scores."""
        return self.terms.mean(axis=0)

    @property
    def deviations(self) -> Float[np.ndarray, "unit"]:
        """The standard error of every score."""
        return self.terms.std(axis=0, ddof=1) / np.sqrt(len(self.terms))

    def as_line(self) -> Surrogate:
        """The linear surrogate with these scores as coefficients, and Student's 95 % intervals."""
        n_pairs, scores, deviations = len(self.terms), self.scores, self.deviations
        strong = np.argsort(-np.abs(scores), kind="stable")[:5]
        influence = (self.terms - scores) / n_pairs
        cross = np.einsum("pk,pj->kj", influence[:, strong], influence)
        return Surrogate(
            coefficients=scores,
            half_widths=student_97_5(float(n_pairs - 1)) * deviations,
            intercept=self.intercept,
            r_squared=self.r_squared,
            effective_samples=2.0 * n_pairs,
            penalty_shift=self.penalty_shift,
            top_certainty=no_swap(scores, deviations**2, cross),
        )


@final
class _Data(NamedTuple):
    """Masks less their mean, f on them, their sizes, and their importance weights."""

    inner: Float[Tensor, "mask unit"]
    y: Float[Tensor, "mask"]
    k: Float[Tensor, "mask"]
    weight: Float[Tensor, "mask"]

    def part(self, chosen: Bool[Tensor, "mask"]) -> "_Data":
        return _Data(*(each[chosen] for each in self))


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """The estimator for one document: the law, f of the empty and of the whole document, and gradients if any.

    `efficient` enforces Σ_j φ_j = f(whole) − f(empty), as for Shapley values; else the mean of the coefficients is
    estimated too.
    """

    law: KnownLaw
    ends: tuple[float, float]
    slopes: Float[np.ndarray, "stage unit"] | None
    efficient: bool

    def fit(self, keep: Bool[np.ndarray, "pair both unit"], values: Float[np.ndarray, "pair both"]) -> Estimate:
        """The estimate from pairs of masks and their values."""
        n_pairs, d = len(keep), self.law.n_units
        # Copies, as torch aligns its own memory and the last bit of a product can depend on alignment.
        z = torch.from_numpy(keep.reshape(2 * n_pairs, d)).double()
        y = torch.from_numpy(values.reshape(-1)).clone()
        k = z.sum(dim=1)
        data = _Data(z - k[:, None] / d, y, k, torch.from_numpy(self.law.weight)[k.long()])
        columns, exact = self._columns(data)
        with_line = d <= _WIDEST and (self.slopes is None or 2 * n_pairs >= _ENOUGH * d)
        terms = self._by_folds(data, columns, exact, with_line)
        each = terms.reshape(n_pairs, 2, d).mean(dim=1).numpy()
        return Estimate(each, *self._quality(each, z, y, data.weight), self._shift(each.mean(axis=0)))

    def _columns(self, data: "_Data") -> tuple[Float[Tensor, "mask column"], Float[Tensor, "line unit"]]:
        """The regressors of the guess, a trend in the size and linear terms, and the exact scores of each linear term.

        The linear terms are g·z̃ and (k/d − ½)² g·z̃ for the gradients g of each stage.
        """
        law, d = self.law, self.law.n_units
        trend = _trend(data.k / d)
        if self.slopes is None:
            return trend, trend.new_zeros(0, d)
        g = torch.from_numpy(self.slopes).clone()
        g = g - g.mean(dim=1, keepdim=True)
        lines = data.inner @ g.T
        spread, bend = law.mass * law.inner_spread, (np.arange(d + 1) / d - 0.5) ** 2
        exact = torch.cat([g * float(spread.sum()), g * float(spread @ bend)]) / law.spread
        return torch.cat([trend, lines, lines * ((data.k / d - 0.5) ** 2)[:, None]], dim=1), exact

    def _by_folds(
        self,
        data: "_Data",
        columns: Float[Tensor, "mask column"],
        exact: Float[Tensor, "line unit"],
        with_line: bool,
    ) -> Float[Tensor, "mask unit"]:
        """The estimates of each mask, with a guess fitted to the other folds; one fitted to the mask would bias them.

        `with_line` adds a ridge regression to the guess.
        """
        root = data.weight.sqrt()[:, None]
        line, penalty = data.y.new_zeros(self.law.n_units), 0.0
        if with_line:
            penalty = _penalty(*_without(columns * root, data.inner * root, data.y * root[:, 0]))
        fold = (torch.arange(len(data.y)) // 2) % _FOLDS
        terms = torch.zeros_like(data.inner)
        for number in range(_FOLDS):
            here, others = fold == number, fold != number
            x, y, level = data.inner[others], data.y[others], root[others]
            if with_line:
                line = _ridge(*_without(columns[others] * level, x * level, y * level[:, 0]), penalty)
                line = line - line.mean()
            fitted = _fitted(columns[others], y - x @ line, data.weight[others])
            terms[here] = self._terms(data.part(here), columns[here], fitted, exact, line)
        return terms

    def _terms(
        self,
        data: "_Data",
        columns: Float[Tensor, "mask column"],
        fitted: Float[Tensor, "column"],
        exact: Float[Tensor, "line unit"],
        line: Float[Tensor, "unit"],
    ) -> Float[Tensor, "mask unit"]:
        """The estimate of every score from each mask: the exact scores of the guess, plus Σ⁻¹ times the residual."""
        law, d = self.law, self.law.n_units
        guess = fitted[_TREND:] @ exact + line * (float(law.mass @ law.inner_spread) / law.spread)
        rest = data.weight * (data.y - data.inner @ line - columns @ fitted)
        terms = guess + rest[:, None] * data.inner / law.spread
        empty, whole = self.ends
        if self.efficient:
            return terms - terms.mean(dim=1, keepdim=True) + (whole - empty) / d
        size = torch.arange(d + 1).double()
        level = _trend(size / d) @ fitted[:_TREND]
        level[0], level[-1] = empty * (1 - law.on_intercept / max(law.mass[0], 1e-300)), whole
        common = torch.from_numpy(law.mass) * (size - law.mean_size) @ level + rest * (data.k - law.mean_size)
        return terms + (common / law.size_spread)[:, None]

    def _shift(self, scores: Float[np.ndarray, "unit"]) -> float:
        """The largest shift of a score by the ridge."""
        law, common = self.law, scores.mean()
        free = (scores - common) * law.spread / (law.spread - law.ridge)
        free += common * law.size_spread / (law.size_spread - law.n_units * law.ridge)
        return float(np.abs(scores - free).max())

    def _quality(
        self, terms: Float[np.ndarray, "pair unit"], z: Tensor, y: Tensor, weight: Tensor
    ) -> tuple[float, float]:
        """Intercept and R² of the surrogate, corrected for the noise of its scores."""
        law, share, line = self.law, weight / weight.sum(), torch.from_numpy(terms.mean(axis=0))
        spread = float(share @ (y - share @ y) ** 2)
        noise = float(terms.var(axis=0, ddof=1).sum()) / len(terms)
        a_unit = float(law.mass @ law.inner_spread / law.mass.sum())
        if self.efficient:
            # The surrogate is fixed at both ends, so its residuals exceed what it leaves unexplained.
            intercept, left = self.ends[0], float(share @ (y - z @ line - self.ends[0]) ** 2) - noise * a_unit
            return intercept, float(np.clip(1.0 - left / spread, 0.0, 1.0)) if spread > 0 else 1.0
        intercept = float(share @ (y - z @ line))
        common = float(line.mean()) ** 2 * (law.size_spread - law.n_units * law.ridge) / float(law.mass.sum())
        explained = (float((line - line.mean()).square().sum()) - noise) * a_unit + common
        return intercept, float(np.clip(explained / spread, 0.0, 1.0)) if spread > 0 else 1.0


def _trend(share: Float[Tensor, "mask"]) -> Float[Tensor, "mask 4"]:
    """A cubic in the share of units kept: how f rises with the size alone."""
    return torch.stack([share**power for power in range(_TREND)], dim=1)


def _fitted(columns: Float[Tensor, "mask column"], y: Float[Tensor, "mask"], weight: Float[Tensor, "mask"]) -> Tensor:
    """Weighted least squares over few columns, with a tiny ridge in case two of them are collinear."""
    scale = (weight @ columns**2).sqrt().clamp(min=1e-300)
    unit = columns / scale
    matrix = unit.T @ (unit * weight[:, None])
    eye = torch.eye(len(matrix), dtype=matrix.dtype)
    return torch.linalg.solve(matrix + 1e-12 * eye, unit.T @ (weight * y)) / scale


def _without(
    columns: Float[Tensor, "mask column"], x: Float[Tensor, "mask unit"], y: Float[Tensor, "mask"]
) -> tuple[Float[Tensor, "mask unit"], Float[Tensor, "mask"]]:
    """The residuals of x and y after regression on a few columns."""
    basis, _ = torch.linalg.qr(columns)
    return x - basis @ (basis.T @ x), y - basis @ (basis.T @ y)


def _ridge(x: Float[Tensor, "mask unit"], y: Float[Tensor, "mask"], penalty: float) -> Float[Tensor, "unit"]:
    """Ridge regression, solved in the smaller dimension, masks or units."""
    n, d = x.shape
    if d <= n:
        return torch.linalg.solve(x.T @ x + penalty * torch.eye(d, dtype=x.dtype), x.T @ y)
    return x.T @ torch.linalg.solve(x @ x.T + penalty * torch.eye(n, dtype=x.dtype), y)


def _penalty(x: Float[Tensor, "mask unit"], y: Float[Tensor, "mask"]) -> float:
    """The penalty with the least generalised cross-validation error (Golub, Heath & Wahba, 1979)."""
    n = len(y)
    level, basis = torch.linalg.eigh(x @ x.T if n <= x.shape[1] else x.T @ x)
    level = level.clamp(min=0.0)
    if n <= x.shape[1]:
        along, outside = basis.T @ y, 0.0
    else:
        # Rows of x sum to zero, so one eigenvalue is zero up to rounding.
        real = level > 1e-12 * level.max()
        along = torch.where(real, basis.T @ (x.T @ y) / torch.where(real, level, 1.0).sqrt(), 0.0)
        outside = max(0.0, float(y @ y - along @ along))
    best, chosen = np.inf, 1.0
    for penalty in np.geomspace(1e-4, 1e2, 19) * max(float(level.mean()), 1e-300):
        shrunk = penalty / (level + penalty)
        freedom = n - float((1 - shrunk).sum())
        error = (float((shrunk * along).square().sum()) + outside) / max(freedom, 1e-9) ** 2
        if error < best:
            best, chosen = error, float(penalty)
    return chosen
