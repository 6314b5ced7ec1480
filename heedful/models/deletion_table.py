"""Attention of one document, separated into words and positions, so that words can move without a forward pass."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import embedding_bag, pad


@final
@dataclass(frozen=True)
class DeletionTable:
    """Score s = q·k/√d_att and value w = W_ℓ v of every word and of padding, each separated into word and position.

    At position p a word has s = s_word + s_pos[p] and w = w_word + w_pos[p]. With g = exp(s), f = 1/K Σ_i N_i/D_i where
    D = Σ_t g_t and N = Σ_t g_t w_t run over all T_max positions, padding (Eq. (4)) included.
    """

    s_word: Float[Tensor, "head token"]
    w_word: Float[Tensor, "head token"]
    s_pad: Float[Tensor, "head"]
    w_pad: Float[Tensor, "head"]
    s_pos: Float[Tensor, "head key"]
    w_pos: Float[Tensor, "head key"]

    def deleted(self, keep: Bool[Tensor, "mask token"]) -> Float[Tensor, "mask"]:
        """f of the shortened texts: a kept word moves to the position given by the number of kept words before it."""
        n_heads, n_tokens = self.s_word.shape
        # What padding adds once the first p positions are taken, for every p.
        padding = pad(torch.cat(self._unknown()).flip(1).cumsum(1).flip(1), (0, 1)).T
        rank = keep.cumsum(dim=1, dtype=torch.int32)
        sums = padding[rank[:, -1]]
        # A table of every word on every position it can land on; a few words at a time keep it within 8 MB.
        step = max(1, 500_000 // (n_tokens * n_heads))
        for words in (slice(first, first + step) for first in range(0, n_tokens, step)):
            g = (self.s_word[:, words, None] + self.s_pos[:, None, :n_tokens] - self._largest()[:, None]).exp()
            w = self.w_word[:, words, None] + self.w_pos[:, None, :n_tokens]
            table = torch.cat([g, g * w]).flatten(1).T.contiguous()
            kept = keep[:, words]
            first_row = torch.arange(kept.shape[1], dtype=torch.int32, device=keep.device) * n_tokens - 1
            count = kept.sum(dim=1, dtype=torch.int32)
            start = count.cumsum(0, dtype=torch.int32) - count
            sums += embedding_bag((first_row + rank[:, words])[kept], table, start, mode="sum")
        D, N = sums.split(n_heads, dim=1)
        return (N / D).mean(dim=1)

    def _unknown(self) -> tuple[Float[Tensor, "head key"], Float[Tensor, "head key"]]:
        """g and g·w of padding at every position."""
        g_h = (self.s_pad[:, None] + self.s_pos - self._largest()).exp()
        return g_h, g_h * (self.w_pad[:, None] + self.w_pos)

    def _largest(self) -> Float[Tensor, "head 1"]:
        """A constant subtracted from every score of a head; it cancels in N/D and prevents an overflow of exp."""
        word = torch.maximum(self.s_word.amax(dim=1), self.s_pad)
        return (word + self.s_pos.amax(dim=1))[:, None]
