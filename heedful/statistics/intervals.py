"""Every confidence interval of the package: of means over draws, texts or seeds, of correlations, of proportions.

Quantiles come from `scipy.special`, which is what `scipy.stats` calls; importing it takes a third of the time.
"""

from math import atanh, inf, isfinite, sqrt, tanh
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

CONFIDENCE = 0.95
"""The default level of every confidence interval."""

TEXTS_FOR_INTERVAL = 5
"""Below this number the rule of `mean_intervals` covers normal values in more than 98 % of samples."""


def normal(share: float) -> float:
    """The quantile of the standard normal distribution below which this share of it lies."""
    return float(special.ndtri(share))


def student(share: float, freedom: float) -> float:
    """The quantile of Student's t distribution below which this share of it lies."""
    return float(special.stdtrit(freedom, share))


def student_97_5(freedom: float) -> float:
    """The 97.5 % quantile of Student's t distribution, for a two-sided 95 % confidence interval."""
    return student(0.975, freedom)


NORMAL_97_5 = normal(0.975)
"""The 97.5 % quantile of the standard normal distribution, 1.96."""


def mean_of_draws(
    draws: Float[np.ndarray, "draw *rest"],
) -> tuple[Float[np.ndarray, "*rest"], Float[np.ndarray, "*rest"]]:
    """The mean over the first axis and the half-width of its 95 % confidence interval, by Student's t.

    For draws of an estimator, which are averages themselves and nearly normal. Values of different texts are not: see
    `mean_intervals`.
    """
    n = len(draws)
    return draws.mean(axis=0), student_97_5(float(n - 1)) * draws.std(axis=0, ddof=1) / sqrt(n)


@final
class TextMoments(NamedTuple):
    """What is known about the distribution over texts from one row of values each."""

    n: np.ndarray
    """The number of values, at least `TEXTS_FOR_INTERVAL`, so that no formula fails."""
    mean: Float[np.ndarray, "row"]
    deviation: Float[np.ndarray, "row"]
    skewness: Float[np.ndarray, "row"]
    usable: Bool[np.ndarray, "row"]
    """Whether there are enough values, and not all equal; elsewhere deviation and skewness mean nothing."""


def text_moments(values: Float[np.ndarray, "row text"]) -> TextMoments:
    """Mean, deviation and skewness of each row over the texts that have a value."""
    present = ~np.isnan(values)
    n = np.maximum(present.sum(axis=1), TEXTS_FOR_INTERVAL)
    mean = np.where(present, values, 0.0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    centred = np.where(present, values - mean[:, None], 0.0)
    deviation = np.sqrt((centred**2).sum(axis=1) / (n - 1))
    # Rounding must not make equal values look different.
    usable = (present.sum(axis=1) >= TEXTS_FOR_INTERVAL) & (deviation > 1e-12 * np.abs(mean))
    deviation = np.where(usable, deviation, 1.0)
    # The unbiased estimate for normal values (G₁) times n / (n − 1): G₁ still falls short where values are skewed.
    skewness = (centred**3).sum(axis=1) / deviation**3 * n**2 / ((n - 1) ** 2 * (n - 2))
    return TextMoments(n, mean, deviation, skewness, usable)


def mean_intervals(
    values: Float[np.ndarray, "row text"], bounds: tuple[float, float] = (-inf, inf)
) -> tuple[Float[np.ndarray, "row"], Float[np.ndarray, "row"]]:
    """The 95 % confidence interval of the mean of each row over texts; NaN in `values` means that a text has no value.

    The union of Student's interval and of Hall's (1992), which corrects it for skewness; both with one degree of
    freedom less, because the skewness is estimated too. NaN where fewer than `TEXTS_FOR_INTERVAL` texts have a value,
    or where all values are equal: such a sample does not show how much texts differ. `bounds` are the least and the
    largest mean that is possible, such as −1 and 1 for correlations.

    Covers the mean in 92 to 98 % of samples for normal, bounded and skewed values (up to log-normal, σ = 1), from 5 to
    200 texts; a skewed sample misses on one side nearly always. At 5 texts beta(0.2, 1) has 90 %. Too wide for values
    at both ends of a bounded range: 98.5 % at 8 texts for beta(½, ½); for values 0 or 1, 98 to 100 % up to 20 texts,
    and 94.7 to 97.1 % at 200 if the mean is 0.1 to 0.9. Too narrow for heavier tails: log-normal values with σ = 1.5
    have 87 % at 6 texts and 94 % at 200. No quantile of Hall's statistic brings both beta(½, ½) and log-normal values
    into 92 to 98 % at 7 to 16 texts.
    """
    n, mean, deviation, skewness, usable = text_moments(values)
    quantile = special.stdtrit(n - 2, (1 + CONFIDENCE) / 2) / np.sqrt(n)
    low = mean - deviation * np.maximum(quantile, _halls_inverse(quantile, skewness, n))
    high = mean - deviation * np.minimum(-quantile, _halls_inverse(-quantile, skewness, n))
    least, most = bounds
    return np.where(usable, np.maximum(low, least), np.nan), np.where(usable, np.minimum(high, most), np.nan)


def seed_intervals(
    values: Float[np.ndarray, "row seed"], bounds: tuple[float, float] = (-inf, inf)
) -> tuple[Float[np.ndarray, "row"], Float[np.ndarray, "row"]]:
    """The 95 % confidence interval of the mean of each row over a few trained models, one per seed.

    Up to `TEXTS_FOR_INTERVAL` − 1 models Student's interval, which takes their results to be nearly normal: texts
    differ more than trainings do. From there on `mean_intervals`. NaN for one model, and where all results are equal.
    """
    n = values.shape[1]
    if n >= TEXTS_FOR_INTERVAL:
        return mean_intervals(values, bounds)
    spread = n > 1 and np.ptp(values, axis=1) > 1e-12 * np.abs(values).max(axis=1)
    mean, half_width = mean_of_draws(values.T) if n > 1 else (values[:, 0], np.full(len(values), np.nan))
    low, high = np.maximum(mean - half_width, bounds[0]), np.minimum(mean + half_width, bounds[1])
    return np.where(spread, low, np.nan), np.where(spread, high, np.nan)


def jackknife_interval(
    estimate: float, without_each: Float[np.ndarray, "text"], bounds: tuple[float, float] = (-inf, inf)
) -> tuple[float, float]:
    """The 95 % confidence interval of an estimate over texts that is no mean, such as a ratio or a slope.

    `without_each` is the estimate without each text. Tukey's (1958) pseudo-values, n · estimate − (n − 1) · estimate
    without text i, are treated as values of texts by `mean_intervals`.
    """
    n = len(without_each)
    low, high = mean_intervals((n * estimate - (n - 1) * without_each)[None], bounds)
    return float(low[0]), float(high[0])


def rank_correlation_interval(rho: float, n: int) -> tuple[float, float]:
    """The 95 % confidence interval of Spearman's ρ from n pairs, within [−1, 1].

    Fisher's z with the variance of Bonett & Wright (2000), (1 + ρ²/2) / (n − 3). ρ = ±1, whose z is infinite, is moved
    by half of the least step that ρ can make. NaN for fewer than 6 pairs.
    """
    if n < 6 or not isfinite(rho):
        return float("nan"), float("nan")
    most = 1 - 6 / (n * (n**2 - 1))
    return _fisher(min(max(rho, -most), most), (1 + rho**2 / 2) / (n - 3))


def correlation_interval(r: float, n: int) -> tuple[float, float]:
    """The 95 % confidence interval of Pearson's correlation from n pairs, by Fisher's z.

    NaN for fewer than 6 pairs, and for r = ±1.
    """
    if n < 6 or not abs(r) < 1:
        return float("nan"), float("nan")
    return _fisher(r, 1 / (n - 3))


def _fisher(r: float, variance: float) -> tuple[float, float]:
    half_width = NORMAL_97_5 * sqrt(variance)
    return tanh(atanh(r) - half_width), tanh(atanh(r) + half_width)


def hall(x: Float[np.ndarray, "row"], skewness: Float[np.ndarray, "row"], n: np.ndarray) -> Float[np.ndarray, "row"]:
    """Hall's (1992) statistic of a standardised mean x: x + γx²/3 + γ²x³/27 + γ/6n, corrected for skewness."""
    return x + skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / (6 * n)


def _halls_inverse(
    quantile: Float[np.ndarray, "row"], skewness: Float[np.ndarray, "row"], n: np.ndarray
) -> Float[np.ndarray, "row"]:
    """The standardised deviation x of the mean at which Hall's statistic (`hall`) is `quantile`."""
    third = np.where(np.abs(skewness) > 1e-9, skewness, 1.0) / 3
    root = (np.cbrt(1 + 3 * third * (quantile - third / (2 * n))) - 1) / third
    return np.where(np.abs(skewness) > 1e-9, root, quantile)


def wilson(count: int, n: int, level: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's (1927) confidence interval of a probability, from `count` successes in n; right near 0 and 1 too."""
    z = normal((1 + level) / 2)
    share = count / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    # At the ends the two are equal, and rounding must not leave the end out.
    return 0.0 if count == 0 else middle - half, 1.0 if count == n else middle + half
