import numpy as np
import pytest
from scipy.optimize import minimize

from heedful.statistics.logistic import fit_logistic


def test_the_weights_minimise_the_penalised_loss():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    y = (rng.random(80) < 1 / (1 + np.exp(-x @ [1.0, -2.0, 0.0] - 0.5))).astype(float)

    def loss(both):
        z = x @ both[:-1] + both[-1]
        return np.logaddexp(0, z).sum() - y @ z + 0.5 * 0.01 * 80 * (both[:-1] ** 2).sum()

    weights, bias = fit_logistic(x, y, 0.01)
    assert [*weights, bias] == pytest.approx(minimize(loss, np.zeros(4), tol=1e-10).x, abs=1e-3)


def test_separable_classes_have_finite_weights():
    weights, bias = fit_logistic(np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([0.0, 0.0, 1.0, 1.0]), 1e-3)
    assert 1 < weights[0] < 50
    assert bias == pytest.approx(0, abs=1e-6)
