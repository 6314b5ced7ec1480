"""A transformer encoder with norms before its sub-layers, whose output is read from the mean of all tokens."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import gelu

from heedful.errors import BadInput
from heedful.models.attention_hook import Attended, attend, keep_projection
from heedful.models.network import check_sizes


@final
@dataclass(frozen=True)
class EncoderConfig:
    """The sizes of an encoder; `T_max` counts the special tokens."""

    depth: int = 6
    n_heads: int = 8
    T_max: int = 320
    d_e: int = 256
    d_hidden: int = 1024
    n_classes: int = 2

    def __post_init__(self) -> None:
        check_sizes({name: getattr(self, name) for name in self.__dataclass_fields__})
        if self.d_e % 2 or self.d_e % self.n_heads or self.T_max < 8 or self.depth < 1:
            raise BadInput(
                f"An encoder needs layers, heads that divide an even d_e, and at least 8 tokens; {self.depth} layers, "
                f"{self.n_heads} heads, d_e {self.d_e} and T_max {self.T_max} were given."
            )


@final
class EncoderLayer(nn.Module):
    """x ← x + attention(norm(x)), then x ← x + W_2 gelu(W_1 norm(x))."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        d_e = config.d_e
        self.d_att = d_e // config.n_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d_e), nn.LayerNorm(d_e)
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d_e, d_e) for _ in range(4))
        self.up, self.down = nn.Linear(d_e, config.d_hidden), nn.Linear(config.d_hidden, d_e)

    def forward(self, x: Float[Tensor, "batch token d_e"], mask: Tensor | None) -> Float[Tensor, "batch token d_e"]:
        """The vectors after this layer; a mask has True at the keys that are seen."""
        h, join = self.norm_1(x), self.o_proj
        q, k, v = (part(h).unflatten(-1, (-1, self.d_att)).transpose(1, 2) for part in self._inputs)
        keep_projection(self, lambda: join.weight.T)
        heads = attend(Attended(self, q, k, v, mask, False, self.d_att**-0.5))
        x = x + join(heads.transpose(1, 2).flatten(2))
        return x + self.down(gelu(self.up(self.norm_2(x))))

    @property
    def _inputs(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        return self.q_proj, self.k_proj, self.v_proj


@final
class EncoderNetwork(nn.Module):
    """Word vectors with learnt positions, layers, a norm, and a linear map of the mean over all tokens."""

    def __init__(self, config: EncoderConfig, n_pieces: int) -> None:
        super().__init__()
        self.config = config
        # Every pass announces the tokens that it reads, so that a hook inside of a layer can know them.
        self.tokens = nn.Identity()
        self.W_e = nn.Parameter(torch.zeros(n_pieces, config.d_e))
        self.W_p = nn.Parameter(torch.zeros(config.T_max, config.d_e))
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(config.d_e)
        self.head = nn.Linear(config.d_e, config.n_classes)

    def states(self, e: Float[Tensor, "batch token d_e"], mask: Tensor | None) -> Float[Tensor, "batch token d_e"]:
        """The vector of each token after the last layer and its norm; a mask has True at the keys that are seen."""
        x = e + self.W_p[: e.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)

    def read_out(
        self, x: Float[Tensor, "batch token d_e"], seen: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The logits, from the mean over the tokens that are seen."""
        share = (seen / seen.sum(dim=1, keepdim=True)).to(x)
        return self.head((x * share[..., None]).sum(dim=1))

    def forward(
        self, e: Float[Tensor, "batch token d_e"], seen: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch class"]:
        """The logits; what is not seen gets no attention and is not part of the mean."""
        # If nothing is hidden, attention is faster without a mask.
        return self.read_out(self.states(e, None if seen.all() else seen[:, None, None, :]), seen)
