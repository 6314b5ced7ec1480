"""The model's mean output while one word is kept, under LIME's law; nothing is drawn."""

import numpy as np
import torch
from jaxtyping import Float

from heedful.theory.game import Games, expectations


def mean_given_kept(games: Games, n_points: int = 48) -> Float[np.ndarray, "game unit"]:
    """E[f(X) | j ∉ S] − f(ξ) for every word j, under LIME's law of S: exact but for rounding.

    Given that j is kept, s of d words are removed with a probability in proportion to d − s, s = 1 … d − 1. Under the
    density 2(1−p) of an independent removal s has that law, but with s = 0 too, where f − f(ξ) is nothing; so

        E[f − f(ξ) | j ∉ S] = (d+1)/(d−1) ∫ 2(1−p) E_p[f − f(ξ) | j kept] dp.
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_points)
    p = torch.from_numpy((nodes + 1) / 2)
    law = (torch.from_numpy(weights / 2) * 2 * (1 - p)).expand(1, len(games.n_units), -1)
    integral, _ = expectations(games.centred(), p, law, torch.zeros_like(law))
    d = games.n_units[:, None]
    return integral[0].numpy() * (d + 1) / (d - 1)
