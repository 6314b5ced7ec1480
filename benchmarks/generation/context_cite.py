"""ContextCite, from its paper: a sparse linear surrogate of the output's logit on random masks over the sources.

Reference: Cohen-Wang, Shah, Georgiev & Madry, NeurIPS 2024, arXiv:2409.00729. Masks keep each source with probability
½; what is modelled is log p / (1 − p) of the probability p of the whole output; the surrogate is a LASSO with α =
0.01 on standardised masks, and the value is divided by the number of output tokens for the fit, as in the authors'
program (`solver.py`), which the scale of α depends on.
"""

from collections.abc import Callable

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import Lasso

N_ABLATIONS = 64
ALPHA = 0.01


def sequence_logit(log_probability: np.ndarray) -> np.ndarray:
    """log p / (1 − p) from log p."""
    return log_probability - np.log(-np.expm1(log_probability))


def context_cite(
    evaluate: Callable[[np.ndarray], np.ndarray],
    n_sources: int,
    n_output: int,
    seed: int,
    n_ablations: int = N_ABLATIONS,
) -> tuple[np.ndarray, float]:
    """The weight of every source, and the intercept; `evaluate` gives log p of the output on masks over the sources."""
    masks = np.random.default_rng(seed).random((n_ablations, n_sources)) < 0.5
    return fit(masks, sequence_logit(evaluate(masks)), n_output)


def fit(masks: np.ndarray, values: np.ndarray, n_output: int) -> tuple[np.ndarray, float]:
    """The LASSO of values on masks."""
    mean, scale = masks.mean(axis=0), masks.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    lasso = Lasso(alpha=ALPHA).fit((masks - mean) / scale, values / n_output)
    weights = lasso.coef_ / scale * n_output
    return weights, float(lasso.intercept_ * n_output - weights @ mean)


def datamodelling_score(weights: np.ndarray, masks: np.ndarray, values: np.ndarray) -> float:
    """The linear datamodelling score: Spearman's correlation of a linear surrogate with the values on held-out masks.

    Reference: Park et al., ICML 2023, arXiv:2303.14186. An intercept does not change it. A surrogate without weights
    scores 0.
    """
    predicted = masks @ weights
    return 0.0 if np.ptp(predicted) == 0 else float(spearmanr(predicted, values).statistic)
