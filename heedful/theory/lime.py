"""What LIME's coefficients tend to on the single-layer model."""

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor


def lime_approximation(
    s: Float[Tensor, "head token"],
    w: Float[Tensor, "head token"],
    s_h: Float[Tensor, "head token"],
    w_h: Float[Tensor, "head token"],
    constant: float = 1.5,
) -> Float[Tensor, "token"]:
    """LIME's coefficient of each position as Theorem 5.1 approximates it, Eq. (19).

        c/K Σ_i W_ℓ (α_t v_t − α_{h,t} v_{h,t}),  c = 3/2 as printed

    s_t = q·k_t/√d_att and w_t = W_ℓ v_t for the document, s_{h,t} and w_{h,t} for [UNK] at the same position; all T_max
    positions are needed, as α and α_h are normalised over them. A word's coefficient is the sum over its occurrences.

    Reference: Lopardo, Precioso & Garreau, ICML 2024, arXiv:2402.03485.
    The printed constant is not LIME's. The proof of Prop. B.1 takes the number s of removed words as uniform given that
    word j is kept; but j is kept with probability (d−s)/d, so given that, s has a law proportional to d − s, and
    3 ∫ x dx = 3/2 becomes 3 ∫ 2x(1−x) dx = 1. Where attention is uniform f is a line, LIME returns its slopes, and
    Eq. (19) returns 3/2 of them whatever T_max: there the remainder is not of smaller order. `constant` = 1 mends it.
    """
    alpha, alpha_h = torch.softmax(s, dim=-1), torch.softmax(s_h, dim=-1)
    return constant * einsum(alpha * w - alpha_h * w_h, "head token -> token") / len(s)
