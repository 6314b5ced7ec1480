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
    """LIME's limit coefficient of each position up to its remainder, Theorem 5.1, Eq. (19).

        3/(2K) Σ_i W_ℓ (α_t v_t − α_{h,t} v_{h,t})

    s_t = q·k_t/√d_att and w_t = W_ℓ v_t for the document, s_{h,t} and w_{h,t} for [UNK] at the same position; all T_max
    positions are needed, as α and α_h are normalised over them. A word's coefficient is the sum over its occurrences.

    Reference: Lopardo, Precioso & Garreau, ICML 2024, arXiv:2402.03485.
    Differs from the paper: its remainder is printed O(T_max^{(2−ε)∨3/2}) and should read O(T_max^{(ε−2)∨(−3/2)}).
    """
    alpha, alpha_h = torch.softmax(s, dim=-1), torch.softmax(s_h, dim=-1)
    return 1.5 * einsum(alpha * w - alpha_h * w_h, "head token -> token") / len(s)
