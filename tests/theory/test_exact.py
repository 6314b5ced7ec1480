"""The exact expectations against brute force over all subsets."""

from itertools import product
from math import comb, factorial, inf

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.theory.exact import _bernstein_weights, _gauss, banzhaf, lime, shapley
from heedful.theory.game import Games, expectations


def random_game(d, n_heads, scale, seed=0):
    rng = np.random.default_rng(seed)
    s = scale * rng.standard_normal((2, n_heads, d))
    s_F = scale * rng.standard_normal(n_heads)
    largest = np.maximum(s.max(axis=(0, 2)), s_F)
    fixed, (a, b) = np.exp(s_F - largest), np.exp(s - largest[:, None])
    w = rng.standard_normal((2, n_heads, d))
    return game_of(a, b, a * w[0], b * w[1], fixed, fixed * rng.standard_normal(n_heads))


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
    for result, expected in (
        (shapley(game), brute_shapley(z, f)),
        (banzhaf(game), np.array(half)),
        (lime(game, 25.0, 1.0, 5000), brute_lime(z, f, 25.0, 1.0, 5000)),
        (lime(game, 5.0, 0.1, 300), brute_lime(z, f, 5.0, 0.1, 300)),
        (lime(game, inf, 0.0, 10**18), brute_lime(z, f, 1e12, 0.0, 1e18)),
    ):
        gap = np.abs(result.values[0].numpy() - expected).max()
        assert gap <= 1e-9 * np.abs(expected).max()
        assert gap <= result.error[0]


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


@pytest.mark.parametrize("d", [60, 255])
def test_a_long_game_s_stated_error_holds_against_a_finer_rule(d):
    game = random_game(d, 2, 3.0)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    p, w = torch.from_numpy((nodes + 1) / 2), torch.from_numpy(weights / 2).reshape(1, 1, -1)
    finer = expectations(game.centred(), p, w, -w)[0][0]
    exact = shapley(game)
    assert float((exact.values - finer).abs().max()) <= exact.error[0]
    assert exact.error[0] < 1e-6


@pytest.mark.slow
@settings(max_examples=150)
@given(
    d=st.integers(2, 40),
    n_heads=st.sampled_from([1, 2, 6]),
    scale=st.sampled_from([0.0, 0.1, 1.0, 10.0, 30.0, 200.0]),
    kernel_width=st.sampled_from([1.0, 25.0, inf]),
    ridge=st.sampled_from([1e-6, 1.0, 100.0]),
    seed=st.integers(0, 10**6),
)
def test_no_game_gives_nan_and_every_bound_holds_against_tighter_rules(d, n_heads, scale, kernel_width, ridge, seed):
    """Against the same values with every rule tightened; brute force above says that those are the right ones."""
    game = random_game(d, n_heads, scale, seed)
    for value in (
        lambda tolerance: shapley(game, tolerance),
        lambda tolerance: lime(game, kernel_width, ridge, 1000, tolerance),
    ):
        usual, tight = value(1e-6), value(1e-12)
        assert torch.isfinite(usual.values).all()
        assert np.isfinite(usual.error).all()
        gap = float((usual.values - tight.values).abs().max())
        assert gap <= usual.error[0] + tight.error[0] + 1e-13


@pytest.mark.slow
@settings(max_examples=100)
@given(
    d=st.integers(2, 10),
    scale=st.sampled_from([1.0, 30.0, 300.0]),
    seed=st.integers(0, 10**6),
    shift=st.floats(-50, 50),
)
def test_axioms_hold_in_any_game(d, scale, seed, shift):
    game = random_game(d, 2, scale, seed)
    exact = shapley(game)
    slack = d * exact.error[0] + 1e-10
    assert float(exact.values.sum() - (game.whole - game.empty)) == pytest.approx(0.0, abs=slack)
    # A constant added to f moves no value.
    moved = Games(
        *(game.a, game.b, game.A + shift * game.a, game.B + shift * game.b),
        *(game.D_F, game.N_F + shift * game.D_F, game.n_units),
    )
    again = shapley(moved)
    assert torch.allclose(again.values, exact.values, atol=1e-11 * (1 + abs(shift)) + again.error[0] + exact.error[0])


def test_where_the_bound_cannot_be_met_the_error_says_so():
    """D spans more than doubles hold: sets without the giant are right or wrong, nobody can tell."""
    game = random_game(8, 1, 1.0)
    giant = torch.ones(8, dtype=torch.float64)
    giant[0] = 1e40
    wide = game_of(game.a[0] * giant, game.b[0], game.A[0] * giant, game.B[0], game.D_F[0] * 1e-5, game.N_F[0] * 1e-5)
    z, f = all_subsets(wide)
    for result, brute in (
        (shapley(wide), brute_shapley(z, f)),
        (lime(wide, 25.0, 1.0, 1000), brute_lime(z, f, 25.0, 1.0, 1000)),
    ):
        assert torch.isfinite(result.values).all()
        assert result.error[0] > 0.1
        assert np.abs(result.values[0].numpy() - brute).max() <= result.error[0]


def stacked(games):
    """Games of one batch each as one batch, short ones filled up with units that weigh nothing."""
    widest = max(game.a.shape[2] for game in games)
    a, b, A, B = (
        torch.cat([torch.nn.functional.pad(getattr(game, name), (0, widest - game.a.shape[2])) for game in games])
        for name in ("a", "b", "A", "B")
    )
    D_F, N_F = (torch.cat([getattr(game, name) for game in games]) for name in ("D_F", "N_F"))
    return Games(a, b, A, B, D_F, N_F, np.concatenate([game.n_units for game in games]))


SIZES = [(5, 1.0), (70, 3.0), (11, 2.0), (30, 12.0), (25, 3.0), (12, 1.0), (26, 3.0), (200, 3.0)]


def test_a_batch_of_games_is_its_games_one_by_one():
    games = [random_game(d, 3, scale, seed) for seed, (d, scale) in enumerate(SIZES)]
    together = stacked(games)
    for value in (shapley, banzhaf, lambda some: lime(some, 25.0, 1.0, 5000)):
        batch = value(together)
        for index, game in enumerate(games):
            alone = value(game)
            n = game.n_units[0]
            assert torch.allclose(batch.values[index, :n], alone.values[0], rtol=0, atol=1e-12)
            assert batch.error[index] == pytest.approx(alone.error[0], abs=1e-12)


@pytest.mark.slow
def test_four_thousand_units_agree_with_a_large_paired_sample():
    """d = 4,096 in portions of bounded size; f on the masks is computed here, from a, b, A and B."""
    d = 4096
    game = random_game(d, 2, 1.0)
    rng = np.random.default_rng(1)
    a, b, A, B, D_F, N_F = (x[0].numpy() for x in (game.a, game.b, game.A, game.B, game.D_F, game.N_F))

    def f(keep):
        z = keep.astype(np.float64)
        heads = [(N_F[h] + z @ A[h] + (1 - z) @ B[h]) / (D_F[h] + z @ a[h] + (1 - z) @ b[h]) for h in range(len(a))]
        return np.mean(heads, axis=0)

    # Banzhaf values from half-random masks and their complements.
    sums, squares, n = np.zeros(d), np.zeros(d), 0
    for _ in range(20):
        keep = rng.random((1000, d)) < 0.5
        odd = (f(keep) - f(~keep)) / 2
        signed = 2 * odd[:, None] * (2 * keep - 1.0)
        sums, squares, n = sums + signed.sum(axis=0), squares + (signed**2).sum(axis=0), n + len(keep)
    mean = sums / n
    error = np.sqrt((squares / n - mean**2) / n)
    exact = banzhaf(game)
    z_scores = (mean - exact.values[0].numpy()) / error
    assert np.mean(np.abs(z_scores) < 1.96) == pytest.approx(0.95, abs=0.015)
    values = shapley(game)
    assert values.error[0] < 1e-6
    assert float(values.values.sum() - (game.whole - game.empty)) == pytest.approx(0.0, abs=1e-5)
    assert lime(game, 25.0, 1.0, 5000).error[0] < 1e-4


@pytest.mark.parametrize(("N", "degree"), [(5, 5), (9, 4), (40, 11), (255, 11)])
def test_weights_on_bernstein_coefficients_are_weights_on_points(N, degree):
    """A polynomial given by its coefficients, its degree raised to N by the textbook's convex combinations."""
    rng = np.random.default_rng(0)
    coefficients = low = rng.standard_normal(degree + 1)
    for n in range(degree + 1, N + 1):
        share = np.arange(n + 1) / n
        padded = np.concatenate([[0.0], coefficients, [0.0]])
        coefficients = share * padded[:-1] + (1 - share) * padded[1:]
    law = rng.random(N + 1)
    p, _ = _gauss(12)
    values = sum(low[i] * comb(degree, i) * p**i * (1 - p) ** (degree - i) for i in range(degree + 1))
    (fine, _), _ = _bernstein_weights(12, law)
    assert fine @ values == pytest.approx(law @ coefficients, rel=1e-10)
