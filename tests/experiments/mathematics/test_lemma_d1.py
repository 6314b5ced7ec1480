from math import sqrt

import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.mathematics import lemma_d1
from heedful.experiments.mathematics.exact_means import mean_by_size
from heedful.experiments.mathematics.lemma_d1 import OWN, LemmaD1, own_game, two_points
from heedful.experiments.mathematics.random_documents import random_documents
from heedful.experiments.mathematics.subsets import all_kept
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return LemmaD1().measure(Workspace(tmp_path_factory.mktemp("lemma-d1")))


def test_the_coins_are_those_of_all_throws(numbers):
    n = 8
    coins = np.where(all_kept(n), 1.5, 0.5)
    Y = coins.sum(axis=1)
    sign = 1.5 * np.sign(Y - Y.mean())
    for law, X in (("X = 2 − one of Y's coins", 2 - coins[:, 0]), ("X = sign of Y − E[Y]", sign)):
        gap = abs((X / Y).mean() - X.mean() / Y.mean())
        bound = 1.5 * Y.var() / (0.5 * n) ** 3 + 1.5**2 * Y.std() / (0.5 * n) ** 2
        assert column(numbers["laws"], "gap", law=law, n=n)[0] == pytest.approx(gap, rel=1e-9)
        assert column(numbers["laws"], "printed", law=law, n=n)[0] == pytest.approx(bound, rel=1e-9)


def test_the_gap_of_the_model_s_own_ratio_is_that_of_all_sets(numbers):
    n = 8
    documents = random_documents(n, n, 1, seed=0)
    g, w, g_h, w_h = (x[0] for x in (documents.g, documents.w, documents.g_h, documents.w_h))
    keep = all_kept(n)
    keep = keep[keep[:, 0] & (keep.sum(axis=1) == n - n // 2)]
    X = np.where(keep[:, 1], g[1] * w[1], g_h[1] * w_h[1])
    Y = np.where(keep, g, g_h).sum(axis=1)
    rows = [row for row in numbers["laws"] if row["law"] == OWN and row["document"] == 0]
    assert column(rows, "gap", n=n)[0] == pytest.approx(abs((X / Y).mean() - X.mean() / Y.mean()), rel=1e-8)
    c, C = column(rows, "c", n=n)[0], column(rows, "C", n=n)[0]
    assert c * n <= Y.min()
    assert max(Y.max() / n, np.abs(X).max()) <= C
    assert C * Y.var() / (c * n) ** 3 + C**2 * Y.std() / (c * n) ** 2 == pytest.approx(
        column(rows, "printed", n=n)[0], rel=1e-9
    )
    game = own_game(documents, 0)
    assert mean_by_size(game)[n // 2] == pytest.approx((X / Y).mean(), rel=1e-10)


def test_a_small_constant_breaks_the_printed_bound_by_hand():
    """X = ±0.11 and Y = 0.09 or 0.11, n = 1: two numbers each, no code between."""
    gap = abs(0.5 * (0.11 / 0.11 - 0.11 / 0.09))
    printed = 0.11 * 0.01**2 / 0.09**3 + 0.11**2 * 0.01 / 0.09**2
    corrected = 0.11 * 0.01**2 / 0.09**3 + 0.11 * 0.01 / 0.09**2
    assert printed < gap < corrected
    row = two_points(0.11, n=1).row()
    assert (row["gap"], row["printed"], row["corrected"]) == pytest.approx((gap, printed, corrected))


def test_the_corrected_bound_holds_for_laws_of_every_kind():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, scale = int(rng.integers(1, 20)), 10 ** rng.uniform(-2, 2)
        p = rng.dirichlet(np.ones(4))
        y = n * scale * rng.uniform(0.2, 1, 4)
        row = lemma_d1.JointLaw(p, scale * rng.uniform(-1, 1, 4), y, n).row()
        assert row["gap"] <= row["corrected"]


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in LemmaD1().claims(numbers)] == ["agrees", "corrected", "agrees"]
    tight = [{**row, "printed": row["printed"] / 20} for row in numbers["laws"]]
    assert LemmaD1().claims({**numbers, "laws": tight})[0].verdict == "differs"
    slow = [{**row, "gap": row["gap"] * sqrt(row["n"])} for row in numbers["laws"]]
    assert LemmaD1().claims({**numbers, "laws": slow})[2].verdict == "differs"
    large = [two_points(C).row() for C in (1.0, 2.0)]
    assert LemmaD1().claims({**numbers, "constants": large})[1].verdict == "agrees"
    worse = [{**row, "corrected": row["corrected"] / 2} for row in numbers["constants"]]
    assert LemmaD1().claims({**numbers, "constants": worse})[1].verdict == "differs"


def test_lines_and_bounds_are_the_numbers(numbers):
    left, right = LemmaD1().draw(numbers)["gaps"].axes
    law = "X another coin"
    line = next(line for line in left.lines if line.get_label() == law)
    assert np.allclose(line.get_ydata(), column(numbers["laws"], "gap", law=law))
    own = next(line for line in left.lines if line.get_label() == OWN)
    gaps = np.array(column(numbers["laws"], "gap", law=OWN, n=8))
    assert own.get_ydata()[0] == pytest.approx(sqrt((gaps**2).mean()))
    for line, name in zip(right.lines, ("gap", "printed", "corrected"), strict=False):
        assert np.allclose(line.get_ydata(), column(numbers["constants"], name))
