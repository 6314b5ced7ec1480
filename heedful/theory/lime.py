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
) -> Float[Tensor, "token"]:
    """LIME's coefficient of each position as Theorem 5.1 approximates it, Eq. (19), as printed.

        3/(2K) Σ_i W_ℓ (α_t v_t − α_{h,t} v_{h,t})

    s_t = q·k_t/√d_att and w_t = W_ℓ v_t for the document, s_{h,t} and w_{h,t} for [UNK] at the same position; all T_max
    positions are needed, as α and α_h are normalised over them. A word's coefficient is the sum over its occurrences.

    Reference: Lopardo, Precioso & Garreau, ICML 2024, arXiv:2402.03485. `lime_leading_term` says what is wrong with it.
    """
    alpha, alpha_h = torch.softmax(s, dim=-1), torch.softmax(s_h, dim=-1)
    return 1.5 * einsum(alpha * w - alpha_h * w_h, "head token -> token") / len(s)


def lime_leading_term(
    s: Float[Tensor, "head token"],
    w: Float[Tensor, "head token"],
    s_h: Float[Tensor, "head token"],
    w_h: Float[Tensor, "head token"],
) -> Float[Tensor, "token"]:
    """What LIME's coefficients tend to as T_max grows under the assumptions of Theorem 5.1.

        1/K Σ_i W_ℓ [ α_t (v_t − ṽ) − α_{h,t} (v_{h,t} − ṽ) ]

    Differs from the paper in two places. The constant: the proof of Prop. B.1 takes the number s of removed words as
    uniform given that word j is kept; but j is kept with probability (d−s)/d, so given that, s has a law proportional
    to d − s, and 3 ∫ x dx = 3/2 becomes 3 ∫ 2x(1−x) dx = 1. The centre: removing a word also changes the denominator of
    every other word's attention, a change of the same order that the proof drops; without it a constant added to f
    would change the explanation, and LIME's never does.
    """
    alpha, alpha_h = torch.softmax(s, dim=-1), torch.softmax(s_h, dim=-1)
    w_tilde = (alpha * w).sum(dim=-1, keepdim=True)
    return einsum(alpha * (w - w_tilde) - alpha_h * (w_h - w_tilde), "head token -> token") / len(s)
