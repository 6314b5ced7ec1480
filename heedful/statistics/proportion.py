"""Intervals of probabilities that were counted."""

from statistics import NormalDist


def wilson(count: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval (1927) of a probability that came true `count` times of n; right near 0 and 1 too."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = count / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    # At the ends the two are equal, and rounding must not leave the end out.
    return 0.0 if count == 0 else middle - half, 1.0 if count == n else middle + half
