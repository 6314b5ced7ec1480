"""Random documents of one head that meet the assumptions of Theorem 5.1, of any length."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.document import SPECIAL
from heedful.theory.game import Games


@final
@dataclass(frozen=True)
class RandomDocuments:
    """g_t and W_ℓ v_t of T_max positions, and the same of [UNK] there; the first d positions are distinct words."""

    g: Float[np.ndarray, "document token"]
    w: Float[np.ndarray, "document token"]
    g_h: Float[np.ndarray, "document token"]
    w_h: Float[np.ndarray, "document token"]
    d: int

    def scores(self, document: int) -> tuple[Float[Tensor, "1 token"], ...]:
        """s, w, s_h and w_h of one document, as `theory/lime.py` takes them."""
        rows = np.log(self.g), self.w, np.log(self.g_h), self.w_h
        s, w, s_h, w_h = (torch.from_numpy(row[document : document + 1]).clone() for row in rows)
        return s, w, s_h, w_h

    def games(self) -> Games:
        """The documents as games: words are removed, padding never."""
        rows = np.log(self.g), self.w, np.log(self.g_h), self.w_h
        s, w, s_h, w_h = (torch.from_numpy(row)[:, None].clone() for row in rows)
        place = np.arange(self.g.shape[1])
        unit_of = np.where(place < self.d, place, SPECIAL)
        return Games.of(s, w, s_h, w_h, np.tile(unit_of, (len(self.g), 1)))


def random_documents(T_max: int, d: int, n_documents: int, seed: int) -> RandomDocuments:
    """Documents with 1 ≤ g, g_h ≤ 2 and 0 ≤ W_ℓ v, W_ℓ v_h ≤ 2; a longer one begins like a shorter one.

    On average words receive more attention than [UNK] and have larger values. With equal averages, sums over words
    would cancel, and errors would decrease faster than in general.
    """
    documents = [_random_document(T_max, d, np.random.default_rng([seed, number])) for number in range(n_documents)]
    g, w, g_h, w_h = np.stack(documents, axis=1)
    return RandomDocuments(g, w, g_h, w_h, d)


def _random_document(T_max: int, d: int, rng: np.random.Generator) -> Float[np.ndarray, "4 token"]:
    words, padding = rng.spawn(2)
    of_words = np.array([[1.5], [0.5], [1.0], [0.0]]) + np.array([[0.5], [1.5], [0.5], [1.5]]) * words.random((d, 4)).T
    # Padding is never replaced: kept or removed it is the same.
    of_padding = np.array([[1.0], [0.0]]) + np.array([[1.0], [1.5]]) * padding.random((T_max - d, 2)).T
    return np.concatenate([of_words, np.tile(of_padding, (2, 1))], axis=1)
