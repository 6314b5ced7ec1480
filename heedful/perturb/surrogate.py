"""The weighted line that LIME fits, and how sure it is of each coefficient."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.errors import BadInput

_NORMAL_97_5 = 1.959963984540054


@final
@dataclass(frozen=True)
class Surrogate:
    """A fitted line: one coefficient a unit, the half-width of its 95 % interval, intercept and weighted R²."""

    coefficients: Float[np.ndarray, "unit"]
    half_widths: Float[np.ndarray, "unit"]
    intercept: float
    r_squared: float
    effective_samples: float
    penalty_shift: float
    """How far the ridge moves a coefficient, at most; the intervals do not count it."""


def kernel(keep: Bool[np.ndarray, "mask unit"], width: float) -> Float[np.ndarray, "mask"]:
    """π of Eq. (15): exp(−δ²/2ν²), δ = 100 (1 − √(share of units kept)).

    δ is 100 times the cosine distance to the whole document, as in the official package; the paper omits the 100.
    """
    distance = 100 * (1 - np.sqrt(keep.mean(axis=1)))
    return np.exp(-(distance**2) / (2 * width**2))


def fit(
    keep: Bool[np.ndarray, "mask unit"],
    values: Float[np.ndarray, "mask"],
    weights: Float[np.ndarray, "mask"],
    ridge: float,
) -> Surrogate:
    """Weighted ridge regression with a free intercept, Eq. (16), as scikit-learn's Ridge does it.

    Intervals are for the coefficients that infinitely many samples of the same ridge per sample would give. They come
    from the sandwich M⁻¹ (Σ_i π_i² r_i² / (1−h_i)² x_i x_iᵀ) M⁻¹ (White 1980; leverages as in HC3 of MacKinnon & White
    1985), which assumes neither that f is a line nor that its residuals are alike, and errs on the wide side where
    samples are few. The first row, the document itself, is not random and is left out of the middle.
    """
    # Copies, as torch aligns its own memory and the last bit of a product can depend on alignment.
    x, y, pi = torch.from_numpy(keep).double(), torch.from_numpy(values).clone(), torch.from_numpy(weights).clone()
    total = pi.sum()
    centre, mean = pi @ x / total, pi @ y / total
    x -= centre
    y = y - mean
    weighted = x * pi[:, None]
    matrix = x.T @ weighted
    answer = weighted.T @ y
    # A trillionth of a penalty stands in for none, which a matrix of too few samples would not bear.
    free = _inverse(matrix, 1e-12 * float(matrix.diagonal().mean())) @ answer
    inverse = _inverse(matrix, ridge)
    coefficients = inverse @ answer
    residuals = y - x @ coefficients
    pull = x @ inverse
    leverage = pi * ((pull * x).sum(dim=1) + 1 / total)
    noise = (pi * residuals / (1 - leverage).clamp(min=1e-6)) ** 2
    noise[0] = 0.0
    # The diagonal of the sandwich: Σ_i noise_i (M⁻¹x_i)_j².
    variance = noise @ pull.square_()
    spread = float(pi @ y**2)
    return Surrogate(
        coefficients=coefficients.numpy(),
        half_widths=_NORMAL_97_5 * variance.sqrt().numpy(),
        intercept=float(mean - centre @ coefficients),
        r_squared=1.0 - float(pi @ residuals**2) / spread if spread > 0 else 1.0,
        effective_samples=float(total**2 / (pi @ pi)),
        penalty_shift=float((coefficients - free).abs().max()),
    )


def _inverse(matrix: Float[Tensor, "unit unit"], ridge: float) -> Float[Tensor, "unit unit"]:
    try:
        return torch.linalg.inv(matrix + ridge * torch.eye(len(matrix), dtype=matrix.dtype))
    except RuntimeError:
        raise BadInput("These samples do not tell the units apart; take more of them, or a ridge above 0.") from None
