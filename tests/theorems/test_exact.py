"""The exact expectations against brute force over all subsets."""

from itertools import product
from math import comb, factorial, inf

import numpy as np
import pytest
import torch

from heedful.theory.exact import banzhaf, lime, shapley
from heedful.theory.game import Games, expectations


def random_game(d, n_heads, scale, seed=0):
    chance = np.random.default_rng(seed)
    s = scale * chance.standard_normal((2, n_heads, d))
    fixed = np.exp(scale * chance.standard_normal(n_heads) - s.max(axis=(0, 2)))
    a, b = np.exp(s - s.max(axis=(0, 2), keepdims=True))
    w = chance.standard_normal((2, n_heads, d))
    return game_of(a, b, a * w[0], b * w[1], fixed, fixed * chance.standard_normal(n_heads))


def game_of(*arrays):
    """A batch of one game."""
    a, b, A, B, D_F, N_F = (torch.from_numpy(np.asarray(x, dtype=np.float64))[None] for x in arrays)
    return Games(a, b, A, B, D_F, N_F, np.array([a.shape[2]]))


def all_subsets(game):
    a, b, A, B, D_F, N_F = (x[0].numpy() for x in (game.a, game.b, game.A, game.B, game.D_F, game.N_F))
    z = np.array(list(product([0, 1], repeat=a.shape[1])))
    heads = [(N_F[h] + z @ A[h] + (1 - z) @ B[h]) / (D_F[h] + z @ a[h] + (1 - z) @ b[h]) for h in range(len(a))]
    return z, np.mean(heads, axis=0)


def brute_shapley(z, f):
    d = z.shape[1]
    value = {tuple(row): answer for row, answer in zip(z.tolist(), f, strict=True)}
    out = np.zeros(d)
    for row in z.tolist():
        k = sum(row)
        for j in range(d):
            if not row[j]:
                more = [*row[:j], 1, *row[j + 1 :]]
                out[j] += factorial(k) * factorial(d - k - 1) / factorial(d) * (value[tuple(more)] - value[tuple(row)])
    return out


def brute_lime(z, f, kernel_width, ridge, n):
    d = z.shape[1]
    s = d - z.sum(axis=1)
    pi = np.exp(-((100 * (1 - np.sqrt(1 - s / d))) ** 2) / (2 * kernel_width**2))
    mass = pi * np.where(s == 0, 1 / n, [(n - 1) / n / d / comb(d, int(size)) for size in s])
    design = np.column_stack([np.ones(len(z)), z])
    matrix = design.T @ (design * mass[:, None])
    matrix[1:, 1:] += ridge / n * np.eye(d)
    return np.linalg.solve(matrix, design.T @ (mass * f))[1:]


GAMES = {
    f"d={d} heads={heads} scale={scale}": random_game(d, heads, scale)
    for d, heads, scale in ((2, 1, 1.0), (3, 1, 1.0), (7, 2, 3.0), (9, 6, 10.0), (8, 2, 30.0), (12, 2, 2.0))
}
one_word = random_game(8, 2, 1.0)
GAMES["one word takes 99.9 %"] = game_of(
    *(np.where(np.arange(8) == 3, 1e4, 1) * x[0].numpy() for x in (one_word.a, one_word.b, one_word.A, one_word.B)),
    one_word.D_F[0],
    one_word.N_F[0],
)


@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_values_are_those_of_brute_force(game):
    z, f = all_subsets(game)
    half = [f[z[:, j] == 1].mean() - f[z[:, j] == 0].mean() for j in range(z.shape[1])]
    for found, expected in (
        (shapley(game), brute_shapley(z, f)),
        (banzhaf(game), np.array(half)),
        (lime(game, 25.0, 1.0, 5000), brute_lime(z, f, 25.0, 1.0, 5000)),
        (lime(game, 5.0, 0.1, 300), brute_lime(z, f, 5.0, 0.1, 300)),
        (lime(game, inf, 0.0, 10**18), brute_lime(z, f, 1e12, 0.0, 1e18)),
    ):
        gap = np.abs(found.values[0].numpy() - expected).max()
        assert gap <= 1e-9 * np.abs(expected).max()
        assert gap <= found.error[0]


@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_shapley_values_share_out_the_whole_difference(game):
    assert float(shapley(game).values.sum()) == pytest.approx(float(game.whole - game.empty), abs=1e-10)


def test_a_dummy_gets_nothing_and_twins_get_the_same():
    game = random_game(6, 2, 2.0)
    a, b, A, B = (x[0].numpy().copy() for x in (game.a, game.b, game.A, game.B))
    b[:, 0], B[:, 0] = a[:, 0], A[:, 0]
    for x in (a, b, A, B):
        x[:, 2] = x[:, 1]
    values = shapley(game_of(a, b, A, B, game.D_F[0], game.N_F[0])).values[0]
    assert abs(float(values[0])) < 1e-12
    assert abs(float(values[1] - values[2])) < 1e-12


def test_conditional_expectations_at_any_probability():
    game = random_game(7, 2, 4.0)
    z, f = all_subsets(game)
    for p in (0.01, 0.4, 0.97):
        mass = np.prod(np.where(z == 1, 1 - p, p), axis=1)
        point = torch.tensor([p], dtype=torch.float64)
        one, none = torch.ones(2, 1, 1, dtype=torch.float64), torch.zeros(2, 1, 1, dtype=torch.float64)
        one[1], none[1] = 0.0, 1.0
        (kept, gone), mean = expectations(game, point, one, none)
        kept, gone, mean = kept[0], gone[0], mean[0]
        assert np.allclose(kept, [(f * mass)[z[:, j] == 1].sum() / (1 - p) for j in range(7)], atol=1e-11)
        assert np.allclose(gone, [(f * mass)[z[:, j] == 0].sum() / p for j in range(7)], atol=1e-11)
        assert float(mean[0]) == pytest.approx(f @ mass, abs=1e-12)


@pytest.mark.parametrize("d", [60, 255])
def test_a_long_game_s_stated_error_holds_against_a_finer_rule(d):
    game = random_game(d, 2, 3.0)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    p, w = torch.from_numpy((nodes + 1) / 2), torch.from_numpy(weights / 2).reshape(1, 1, -1)
    finer = expectations(game.centred(), p, w, -w)[0][0]
    found = shapley(game)
    assert float((found.values - finer).abs().max()) <= found.error[0]
    assert found.error[0] < 1e-6
