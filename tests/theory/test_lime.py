"""The closed forms of LIME on one layer against slow loops, and against each other in their limits."""

import numpy as np
import pytest
import torch

from heedful.theory.lime import lime_approximation, lime_integral, lime_leading_term, lime_sums

HEADS, T = 2, 5
S, W, S_H, W_H = (torch.from_numpy(np.random.default_rng(seed).standard_normal((HEADS, T))) for seed in range(4))


def loops(coefficient):
    """The mean over heads of a coefficient of every position, from g, w, g_h and w_h of one head."""
    return [
        np.mean(
            [
                coefficient(t, S[k].exp().numpy(), W[k].numpy(), S_H[k].exp().numpy(), W_H[k].numpy())
                for k in range(HEADS)
            ]
        )
        for t in range(T)
    ]


def test_equation_19_is_the_difference_of_attention_times_value():
    expected = loops(lambda t, g, w, g_h, w_h: 1.5 * (g[t] / g.sum() * w[t] - g_h[t] / g_h.sum() * w_h[t]))
    assert lime_approximation(S, W, S_H, W_H).tolist() == pytest.approx(expected)


def test_the_leading_term_is_centred_at_the_pooled_value():
    def coefficient(t, g, w, g_h, w_h):
        pooled = (g * w).sum() / g.sum()
        return g[t] / g.sum() * (w[t] - pooled) - g_h[t] / g_h.sum() * (w_h[t] - pooled)

    assert lime_leading_term(S, W, S_H, W_H).tolist() == pytest.approx(loops(coefficient))
    shifted = lime_leading_term(S, W + 7.0, S_H, W_H + 7.0)
    assert shifted.tolist() == pytest.approx(loops(coefficient)), "a constant added to f changes nothing"


def test_equation_31_is_its_sum():
    d = 4

    def coefficient(t, g, w, g_h, w_h):
        x = np.arange(1, d) / (d - 1)
        return 3 / d * (x * (g[t] * w[t] - g_h[t] * w_h[t]) / ((1 - x) * g.sum() + x * g_h.sum())).sum()

    assert lime_sums(S, W, S_H, W_H, d).tolist() == pytest.approx(loops(coefficient))


def test_the_sum_tends_to_the_integral_and_no_score_overflows():
    integral = lime_integral(S, W, S_H, W_H)
    assert lime_sums(S, W, S_H, W_H, 20_000).tolist() == pytest.approx(integral.tolist(), abs=1e-3)
    torch.testing.assert_close(lime_integral(S + 1000, W, S_H + 1000, W_H), integral)


def test_without_a_change_in_the_denominator_the_integral_is_equation_19():
    torch.testing.assert_close(lime_integral(S, W, S, W_H), lime_approximation(S, W, S, W_H))
