"""One document as the additive game of `theory/game.py`, in NumPy: f on any set of kept units, by definition."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document import Unit
from heedful.models.question import ask
from heedful.models.single_layer import SingleLayer
from heedful.perturb.exact_game import games_of
from heedful.theory.game import Games


@final
@dataclass(frozen=True)
class DocumentGame:
    """f(z) = 1/K Σ_i N_i(z)/D_i(z), each sum over units of one number if kept (a, A) and another if removed (b, B)."""

    a: Float[np.ndarray, "head unit"]
    b: Float[np.ndarray, "head unit"]
    A: Float[np.ndarray, "head unit"]
    B: Float[np.ndarray, "head unit"]
    D_F: Float[np.ndarray, "head"]
    N_F: Float[np.ndarray, "head"]

    @staticmethod
    def of(games: Games, index: int = 0) -> "DocumentGame":
        """One game of a batch."""
        d = int(games.n_units[index])
        a, b, A, B = (x[index, :, :d].cpu().numpy() for x in (games.a, games.b, games.A, games.B))
        return DocumentGame(a, b, A, B, games.D_F[index].cpu().numpy(), games.N_F[index].cpu().numpy())

    @property
    def n_units(self) -> int:
        """The number of units."""
        return self.a.shape[1]

    def values(self, keep: Bool[np.ndarray, "subset unit"]) -> Float[np.ndarray, "subset"]:
        """f on each set of kept units."""
        z = keep.astype(np.float64)
        D = self.D_F + z @ self.a.T + (1 - z) @ self.b.T
        N = self.N_F + z @ self.A.T + (1 - z) @ self.B.T
        return (N / D).mean(axis=1)

    def with_kept(self, unit: int) -> "DocumentGame":
        """The game of the other units, with this one always kept."""
        a, b, A, B = (np.delete(x, unit, axis=1) for x in (self.a, self.b, self.A, self.B))
        return DocumentGame(a, b, A, B, self.D_F + self.a[:, unit], self.N_F + self.A[:, unit])


def games_of_text(model: SingleLayer, text: str, unit: Unit) -> Games:
    """A text as the game of the model's second class, words replaced by the unknown one."""
    return games_of(ask(model, [text], 1), unit, "replace", 2, "The game of a text")
