"""Logistic regression with a small penalty, by Newton's method."""

import numpy as np
from jaxtyping import Float

_STEPS = 30


def fit_logistic(
    x: Float[np.ndarray, "row feature"], y: Float[np.ndarray, "row"], ridge: float
) -> tuple[Float[np.ndarray, "feature"], float]:
    """Weights w and intercept b that maximise Σ log P(y) − ridge · rows / 2 · ‖w‖², with P(1) = σ(x · w + b).

    The intercept has a millionth of the penalty, so that the steps converge for separable classes too.
    """
    design, both = np.column_stack([x, np.ones(len(x))]), np.zeros(x.shape[1] + 1)
    penalty = ridge * len(x) * np.diag([1.0] * x.shape[1] + [1e-6])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(design @ both, -30, 30)))
        hessian = design.T @ (design * (p * (1 - p))[:, None]) + penalty
        both = both + np.linalg.solve(hessian, design.T @ (y - p) - penalty @ both)
    return both[:-1], float(both[-1])
