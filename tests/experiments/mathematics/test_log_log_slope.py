import numpy as np
import pytest

from heedful.experiments.mathematics.log_log_slope import curves, rms, slope, slope_over_documents

X = [2.0, 4.0, 16.0, 64.0]


def test_a_power_law_gives_its_exponent():
    assert slope(X, [3 * x**-1.7 for x in X]) == pytest.approx(-1.7)
    assert slope(X, np.exp(np.polyval([0.4, 1.0], np.log(X))).tolist()) == pytest.approx(0.4)


def test_a_slope_is_the_least_squares_one():
    y = np.exp(np.random.default_rng(0).standard_normal(4))
    assert slope(X, y.tolist()) == pytest.approx(np.polyfit(np.log(X), np.log(y), 1)[0])


def test_the_interval_reflects_the_variation_over_documents():
    rng = np.random.default_rng(0)
    same = np.array(X)[None] ** -1.5 * rng.uniform(0.5, 2, (12, 1))
    sure = slope_over_documents(X, same * np.exp(1e-3 * rng.standard_normal(same.shape)))
    assert (sure.value, sure.low, sure.high) == pytest.approx((-1.5, -1.5, -1.5), abs=1e-2)
    unsure = slope_over_documents(X, same * np.exp(rng.standard_normal(same.shape)))
    assert unsure.low < unsure.value < unsure.high
    assert unsure.high - unsure.low > 0.1
    assert np.isnan(slope_over_documents(X, same[:4]).low)


@pytest.mark.parametrize("n_documents", [8, 16])
def test_intervals_hold_the_exponent_that_made_the_documents_in_92_to_98_percent(n_documents):
    held, n = 0, 1_500
    rng = np.random.default_rng(n_documents)
    for _ in range(n):
        noise = rng.uniform(0.5, 1.5, (n_documents, 1)) * rng.uniform(0.5, 1.5, (n_documents, 4))
        found = slope_over_documents(X, np.array(X) ** -1.0 * noise)
        held += found.low <= -1 <= found.high
    # Three standard errors of the simulation are 2 percentage points.
    assert 0.92 - 0.02 < held / n < 0.98 + 0.02


def test_curves_are_the_rows_document_by_document():
    rows = [{"n": n, "y": 10.0 * n + k, "kind": kind} for k in range(3) for n in (4, 2) for kind in "ab"]
    x, y = curves(rows, "n", "y", kind="a")
    assert x == [2, 4]
    assert y.tolist() == [[20, 40], [21, 41], [22, 42]]
    assert rms(np.array([[3.0], [4.0]])).tolist() == pytest.approx([12.5**0.5])
