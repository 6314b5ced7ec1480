"""The gradient of the single-layer model in closed form."""

from math import sqrt

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor


def gradient(
    e: Float[Tensor, "token d_e"],
    q: Float[Tensor, "head d_att"],
    W_k: Float[Tensor, "head d_att d_e"],
    W_v: Float[Tensor, "head d_out d_e"],
    b_v: Float[Tensor, "head d_out"],
    W_l: Float[Tensor, "head d_out"],
) -> Float[Tensor, "token d_e"]:
    """Gradient of the single-layer model at each token, the query held fixed, Theorem 4.1, Eq. (14).

        ∇_{e_t} f = 1/K Σ_i α_t [ W_vᵀ W_ℓᵀ + W_ℓ (v_t − ṽ) W_kᵀ q / √d_att ]

    Reference: Lopardo, Precioso & Garreau, ICML 2024, arXiv:2402.03485. Equal to autograd at every position but the
    query's own, where `query_gradient` is missing.
    """
    alpha, surprise = _attention_and_surprise(e, q, W_k, W_v, b_v, W_l)
    through_values = einsum(W_v, W_l, "head d_out d_e, head d_out -> head d_e")
    through_keys = einsum(W_k, q, "head d_att d_e, head d_att -> head d_e") / sqrt(q.shape[-1])
    total = einsum(alpha, through_values, "head token, head d_e -> token d_e")
    total = total + einsum(alpha, surprise, through_keys, "head token, head token, head d_e -> token d_e")
    return total / len(q)


def query_gradient(
    e: Float[Tensor, "token d_e"],
    q: Float[Tensor, "head d_att"],
    W_q: Float[Tensor, "head d_att d_e"],
    W_k: Float[Tensor, "head d_att d_e"],
    W_v: Float[Tensor, "head d_out d_e"],
    b_v: Float[Tensor, "head d_out"],
    W_l: Float[Tensor, "head d_out"],
) -> Float[Tensor, "d_e"]:
    """The gradient at [CLS] through its own query; not in the paper, which holds q fixed.

        1/(K √d_att) Σ_i Σ_t α_t W_ℓ(v_t − ṽ) W_qᵀ k_t

    b_k may be left out of k_t: Σ_t α_t (v_t − ṽ) = 0.
    """
    alpha, surprise = _attention_and_surprise(e, q, W_k, W_v, b_v, W_l)
    k = einsum(W_k, e, "head d_att d_e, token d_e -> head token d_att")
    pull = einsum(alpha, surprise, k, "head token, head token, head token d_att -> head d_att")
    return einsum(pull, W_q, "head d_att, head d_att d_e -> d_e") / (len(q) * sqrt(q.shape[-1]))


def _attention_and_surprise(
    e: Float[Tensor, "token d_e"],
    q: Float[Tensor, "head d_att"],
    W_k: Float[Tensor, "head d_att d_e"],
    W_v: Float[Tensor, "head d_out d_e"],
    b_v: Float[Tensor, "head d_out"],
    W_l: Float[Tensor, "head d_out"],
) -> tuple[Float[Tensor, "head token"], Float[Tensor, "head token"]]:
    """α_t, Eq. (8), and W_ℓ (v_t − ṽ), Eqs. (7) and (9)."""
    k = einsum(W_k, e, "head d_att d_e, token d_e -> head token d_att")
    v = einsum(W_v, e, "head d_out d_e, token d_e -> head token d_out") + b_v[:, None]
    alpha = torch.softmax(einsum(q, k, "head d_att, head token d_att -> head token") / sqrt(q.shape[-1]), dim=-1)
    v_tilde = einsum(alpha, v, "head token, head token d_out -> head d_out")
    return alpha, einsum(W_l, v - v_tilde[:, None], "head d_out, head token d_out -> head token")
