"""Colours: green for evidence for the target, orange-red for evidence against it, as in Figure 1.

They are the bluish green and the vermilion of Okabe & Ito (2008), which are distinguishable with any common colour
blindness. A negative unit is also underlined, so that no meaning depends on colour alone.
"""

import numpy as np
from jaxtyping import Float

GREEN = (0, 158, 115)
RED = (213, 94, 0)


def strengths(scores: Float[np.ndarray, "*unit"]) -> Float[np.ndarray, "*unit"]:
    """Scores divided by the largest absolute one, so that each method uses its whole colour range."""
    largest = np.abs(scores).max(initial=0.0)
    return scores / largest if largest > 0 else np.zeros_like(scores)


def blend(strength: float, paper: tuple[int, int, int]) -> tuple[int, int, int]:
    """The tint of a strength in [−1, 1] on a background."""
    ink, share = (GREEN if strength > 0 else RED), 0.85 * abs(strength)
    red, green, blue = (round(p + share * (i - p)) for i, p in zip(ink, paper, strict=True))
    return red, green, blue
