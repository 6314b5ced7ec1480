"""Prop. B.1's sums over the number of removed words, Eqs. (29) and (30), as printed and corrected."""

import numpy as np
from jaxtyping import Float

SizeLaw = Float[np.ndarray, "size"]


def printed_law(d: int) -> SizeLaw:
    """The probability that s = 1 … d − 1 words are removed given that one is kept, as in Eqs. (29) and (30)."""
    return np.full(d - 1, 1 / d)


def corrected_law(d: int) -> SizeLaw:
    """The same by Bayes' rule: s is uniform on 1 … d, and s words exclude a given one with probability (d−s)/d."""
    return 2 * (d - np.arange(1, d)) / (d * (d - 1))


def equation_29(g_v: Float[np.ndarray, "term"], G: float, G_h: float, law: SizeLaw) -> Float[np.ndarray, "term"]:
    """E[A_t V_t | ℓ ∉ S] where ℓ is the word at t: Σ_s law(s) g_t v_t / ((1−x) Σg + x Σg_h), x = s/(d−1)."""
    x = np.arange(1, len(law) + 1) / len(law)
    return g_v * (law / ((1 - x) * G + x * G_h)).sum()


def equation_30(
    g_v: Float[np.ndarray, "term"], g_v_h: Float[np.ndarray, "term"], G: float, G_h: float, law: SizeLaw
) -> Float[np.ndarray, "term"]:
    """E[A_t V_t | ℓ ∉ S] where another word is at t: the numerator is (1−x) g_t v_t + x g_{h,t} v_{h,t}."""
    x = np.arange(1, len(law) + 1) / len(law)
    share = law / ((1 - x) * G + x * G_h)
    return g_v * ((1 - x) * share).sum() + g_v_h * (x * share).sum()
