"""The limit of LIME's coefficients on the single-layer model."""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor


def lime_approximation(
    s: Float[Tensor, "head token"],
    w: Float[Tensor, "head token"],
    s_h: Float[Tensor, "head token"],
    w_h: Float[Tensor, "head token"],
) -> Float[Tensor, "token"]:
    """LIME's coefficient of each position as Theorem 5.1 approximates it, Eq. (19), as printed.

        3/(2K) Σ_i W_ℓ (α_t v_t − α_{h,t} v_{h,t})

    s_t = q·k_t/√d_att and w_t = W_ℓ v_t for the document, s_{h,t} and w_{h,t} for [UNK] at the same position; all T_max
    positions are needed, as α and α_h are normalised over them. A word's coefficient is the sum over its occurrences.

    Reference: Lopardo, Precioso & Garreau, ICML 2024, arXiv:2402.03485. `lime_leading_term` corrects it.
    """
    alpha, alpha_h = torch.softmax(s, dim=-1), torch.softmax(s_h, dim=-1)
    return 1.5 * einsum(alpha * w - alpha_h * w_h, "head token -> token") / len(s)


def lime_leading_term(
    s: Float[Tensor, "head token"],
    w: Float[Tensor, "head token"],
    s_h: Float[Tensor, "head token"],
    w_h: Float[Tensor, "head token"],
) -> Float[Tensor, "token"]:
    """The limit of LIME's coefficients as T_max grows, under the assumptions of Theorem 5.1.

        1/K Σ_i W_ℓ [ α_t (v_t − ṽ) − α_{h,t} (v_{h,t} − ṽ) ]

    Differs from the paper in two places. The constant: the proof of Prop. B.1 takes the number s of removed words as
    uniform given that word j is kept; but j is kept with probability (d−s)/d, so given that, s has a law proportional
    to d − s, and 3 ∫ x dx = 3/2 becomes 3 ∫ 2x(1−x) dx = 1. The centre: removing a word also changes the denominator of
    every other word's attention, a change of the same order that the proof drops; without it a constant added to f
    would change the explanation, but LIME is invariant to constants.
    """
    alpha, alpha_h = torch.softmax(s, dim=-1), torch.softmax(s_h, dim=-1)
    w_tilde = (alpha * w).sum(dim=-1, keepdim=True)
    return einsum(alpha * (w - w_tilde) - alpha_h * (w_h - w_tilde), "head token -> token") / len(s)


def lime_sums(
    s: Float[Tensor, "head token"],
    w: Float[Tensor, "head token"],
    s_h: Float[Tensor, "head token"],
    w_h: Float[Tensor, "head token"],
    d: int,
) -> Float[Tensor, "token"]:
    """Eq. (31), as printed, which Prop. B.1's Eqs. (29) and (30) give for a document of d words.

    3/(dK) Σ_i Σ_{s=1}^{d−1} x (g_t v_t − g_{h,t} v_{h,t}) / ((1−x) Σ_u g_u + x Σ_u g_{h,u})    with x = s/(d−1)
    """
    g, g_h = _comparable(s, s_h)
    x = torch.arange(1, d, dtype=s.dtype, device=s.device) / max(d - 1, 1)
    means = (1 - x) * g.sum(dim=-1, keepdim=True) + x * g_h.sum(dim=-1, keepdim=True)
    factor = 3 / d * (x / means).sum(dim=-1)
    return einsum(factor, g * w - g_h * w_h, "head, head token -> token") / len(s)


def lime_integral(
    s: Float[Tensor, "head token"],
    w: Float[Tensor, "head token"],
    s_h: Float[Tensor, "head token"],
    w_h: Float[Tensor, "head token"],
) -> Float[Tensor, "token"]:
    """Eq. (31) with its sum over sizes as an integral, which Lemma D.2 solves.

    3/K Σ_i (g_t v_t − g_{h,t} v_{h,t}) / Σ_u g_u · (a − log(1+a))/a²    with a = Σ_u g_{h,u} / Σ_u g_u − 1
    """
    g, g_h = _comparable(s, s_h)
    total = g.sum(dim=-1)
    a = g_h.sum(dim=-1) / total - 1
    # Near a = 0 the series 1/2 − a/3 + a²/4 − a³/5 keeps the digits that the difference would lose.
    series = 0.5 - a / 3 + a**2 / 4 - a**3 / 5
    factor = torch.where(a.abs() < 1e-4, series, (a - torch.log1p(a)) / a.where(a != 0, 1.0) ** 2)
    return 3 * einsum(factor / total, g * w - g_h * w_h, "head, head token -> token") / len(s)


def _comparable(
    s: Float[Tensor, "head token"], s_h: Float[Tensor, "head token"]
) -> tuple[Float[Tensor, "head token"], Float[Tensor, "head token"]]:
    """g = exp(s) of the document and of its replacement; a constant subtracted from a head's scores cancels."""
    largest = torch.maximum(s.amax(dim=-1), s_h.amax(dim=-1))[:, None]
    return (s - largest).exp(), (s_h - largest).exp()
