"""The model's mean output given that one word is kept, under LIME's sampling distribution; nothing is sampled."""

import numpy as np
import torch
from jaxtyping import Float

from heedful.theory.game import Games, expectations


def mean_given_kept(games: Games, n_points: int = 48) -> Float[np.ndarray, "game unit"]:
    """E[f(X) | j ∉ S] − f(ξ) for every word j, under LIME's distribution of S: exact up to rounding.

    Given that j is kept, s of d words are removed with probability proportional to d − s, s = 1 … d − 1. If words are
    removed independently with probability p of density 2(1−p), s has the same distribution, except that s = 0 is
    possible, where f − f(ξ) = 0; so

        E[f − f(ξ) | j ∉ S] = (d+1)/(d−1) ∫ 2(1−p) E_p[f − f(ξ) | j kept] dp.
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_points)
    p = torch.from_numpy((nodes + 1) / 2)
    law = (torch.from_numpy(weights / 2) * 2 * (1 - p)).expand(1, len(games.n_units), -1)
    integral, _ = expectations(games.centred(), p, law, torch.zeros_like(law))
    d = games.n_units[:, None]
    return integral[0].numpy() * (d + 1) / (d - 1)
