"""LIME for infinitely many samples at any bandwidth: Mardaoui & Garreau, AISTATS 2021, arXiv:2010.12487, Theorem 1."""

import numpy as np
from jaxtyping import Bool, Float

PerUnit = Float[np.ndarray, "unit"]
DEFAULT = 0.25
"""The official package's bandwidth; the package multiplies distances by 100 and uses 25."""
WIDE = 1e4
"""A bandwidth at which every weight is 1 to eight digits."""


def cosine_kernel(d: int, nu: float) -> Float[np.ndarray, "size"]:
    """π of s = 0 … d removed units, Eq. (15): the cosine distance of the mask to all ones is 1 − √(1 − s/d)."""
    s = np.arange(d + 1)
    return np.exp(-((1 - np.sqrt(1 - s / d)) ** 2) / (2 * nu**2))


def sigmas(d: int, nu: float) -> tuple[float, float, float]:
    """σ_1/c_d, σ_2/c_d and σ_3/c_d of Theorem 1, from α_p = E[π z_1 … z_p]."""
    s = np.arange(1, d + 1)
    pi, kept = cosine_kernel(d, nu)[1:] / d, (d - s) / d
    zero, one, two = float(pi.sum()), float(pi @ kept), float(pi @ (kept * (d - s - 1) / (d - 1)))
    c = (d - 1) * zero * two - d * one**2 + zero * one
    second = ((d - 2) * zero * two - (d - 1) * one**2 + zero * one) / (one - two)
    third = (one**2 - zero * two) / (one - two)
    return -one / c, second / c, third / c


def theorem_1(f: float, kept: PerUnit, nu: float) -> PerUnit:
    """β_j = c_d^−1 {σ_1 E[π f] + σ_2 E[π z_j f] + σ_3 Σ_{k≠j} E[π z_k f]}; `f` and `kept` are those expectations."""
    first, second, third = sigmas(len(kept), nu)
    return first * f + second * kept + third * (kept.sum() - kept)


def least_squares_slopes(keep: Bool[np.ndarray, "mask unit"], f: np.ndarray, mass: np.ndarray) -> PerUnit:
    """The coefficients of the weighted least-squares regression of f on masks, Eq. (16) without penalty."""
    design = np.column_stack([np.ones(len(keep)), keep])
    return np.linalg.solve(design.T @ (design * mass[:, None]), design.T @ (mass * f))[1:]


def large_bandwidth(d: int, kept_means: PerUnit, mean: float) -> dict[str, PerUnit]:
    """Eq. (17) from E[f | j ∉ S], with the factor that it lacks, and with that and the mean over words, from E[f].

    As ν → ∞ the three coefficients tend to −6/(d+1), 6(d²−2d+3)/(d²−1) and −6(d−3)/(d²−1), and E[z_j f] is
    (d−1)/(2d) E[f | j ∉ S]; so Theorem 1 becomes

        (d−1)/(d+1) × Eq. (17) + 6/(d+1) (mean_k E[f | k ∉ S] − E[f]).
    """
    printed = 3 * (kept_means - kept_means.mean())
    factor = (d - 1) / (d + 1) * printed
    return {
        "Eq. (17)": printed,
        "with the factor": factor,
        "with both": factor + 6 / (d + 1) * (kept_means.mean() - mean),
    }
