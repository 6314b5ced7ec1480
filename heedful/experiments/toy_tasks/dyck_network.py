"""A causal transformer of two layers for bracket strings; each part can be switched off.

Weights and switches are plain tensors, so that models with different parts train side by side under one vmap.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import layer_norm, pad, relu

from heedful.errors import BadInput
from heedful.experiments.toy_tasks.dyck import Dyck
from heedful.models.network import positional_table


@final
@dataclass(frozen=True)
class DyckParts:
    """The parts of a network; with all of them it is a standard transformer.

    Without `first_layer` the first layer is Wen et al.'s minimal one, which is not trained: it encodes every bracket by
    its type and depth, one coordinate for each pair. Without `content` the second layer's attention does not depend on
    the string: its scores are a table, N(0, `noise`²) for every pair of positions, drawn once and not trained.
    """

    attention_residual: bool = True
    projection: bool = True
    feed_forward: bool = True
    norm: bool = True
    positions: bool = True
    first_layer: bool = True
    content: bool = True
    noise: float = 0.0


@final
class Read(NamedTuple):
    """The outputs of a network on strings; row p has read the start token and p tokens."""

    logits: Float[Tensor, "string row token"]
    """Logits of the next token."""
    attention: Float[Tensor, "string row key"]
    """Attention of the second layer; key 0 is the start token, key j the j-th token."""
    pooled: Float[Tensor, "string row d"]
    """The output of the second layer's attention."""


@final
@dataclass(frozen=True)
class DyckNetwork:
    """The network: twice x ← norm(x + attention), x ← norm(x + two layers with ReLU); one head; a read-out.

    Positions are the sines of Vaswani et al. They are defined beyond the training lengths, where a learned table has no
    rows, but the network has not been trained on their values there.
    """

    language: Dyck
    width: int = 50

    def __post_init__(self) -> None:
        n_needed = 1 + 2 * self.language.n_types * self.language.depth
        if self.width % 2 or self.width < n_needed:
            raise BadInput(f"The width must be even and at least {n_needed}; {self.width} was given.")

    def initial(self, seed: int) -> dict[str, Tensor]:
        """Initial weights as in `torch.nn`: N(0, 1) for token vectors, U(±1/√inputs) for matrices; biases 0."""
        rng = torch.Generator().manual_seed(seed)
        d, n = self.width, self.language.n_tokens

        def matrix(*shape: int) -> Tensor:
            return (2 * torch.rand(shape, generator=rng) - 1) / sqrt(shape[0])

        weights = {"tokens": torch.randn(n, d, generator=rng)}
        for layer in (1, 2):
            weights |= {f"{name}_{layer}": matrix(d, d) for name in ("query", "key", "value", "out")}
            weights |= {f"hidden_{layer}": matrix(d, d), f"hidden_bias_{layer}": torch.zeros(d)}
            weights |= {f"back_{layer}": matrix(d, d), f"back_bias_{layer}": torch.zeros(d)}
        return weights | {"readout": matrix(d, n), "readout_bias": torch.zeros(n)}

    def fixed(self, parts: DyckParts, longest: int, seed: int) -> dict[str, Tensor]:
        """The tensors that are not trained: the switches, and the tables of positions and scores up to this length."""
        gates = {name: torch.tensor(float(on)) for name, on in asdict(parts).items() if name != "noise"}
        sines = positional_table("authors", longest + 1, self.width).float()
        scores = torch.randn(longest + 1, longest + 1, generator=torch.Generator().manual_seed(seed))
        return gates | {"sines": gates["positions"] * sines, "scores": (1 - gates["content"]) * parts.noise * scores}

    def run(self, weights: Mapping[str, Tensor], tokens: Int[Tensor, "string place"]) -> Read:
        """The forward pass, from trained and fixed tensors.

        It never reads a value on the host, and its gradients are added in a fixed order, so it can be captured as a
        CUDA graph and is deterministic.
        """
        ids = pad(tokens, (1, 0), value=self.language.begin)
        n_rows = ids.shape[-1]
        one_hot = (ids[..., None] == torch.arange(self.language.n_tokens, device=ids.device)).to(
            weights["tokens"].dtype
        )
        x = one_hot @ weights["tokens"] + weights["sines"][:n_rows]
        x, _ = self._layer(weights, 1, x, _attention(self._scores(weights, 1, x)))
        x = torch.lerp(self._minimal(one_hot), x, weights["first_layer"])
        scores = weights["content"] * self._scores(weights, 2, x) + weights["scores"][:n_rows, :n_rows]
        attention = _attention(scores)
        x, pooled = self._layer(weights, 2, x, attention)
        return Read(x @ weights["readout"] + weights["readout_bias"], attention, pooled)

    def _scores(
        self, weights: Mapping[str, Tensor], layer: int, x: Float[Tensor, "string row d"]
    ) -> Float[Tensor, "string row key"]:
        query, key = x @ weights[f"query_{layer}"], x @ weights[f"key_{layer}"]
        return query @ key.transpose(-1, -2) / sqrt(self.width)

    def _layer(
        self,
        weights: Mapping[str, Tensor],
        layer: int,
        x: Float[Tensor, "string row d"],
        attention: Float[Tensor, "string row key"],
    ) -> tuple[Float[Tensor, "string row d"], Float[Tensor, "string row d"]]:
        """The hidden state after the layer, and the output of its attention."""
        same = torch.eye(self.width, device=x.device, dtype=x.dtype)
        out = torch.lerp(same, weights[f"out_{layer}"], weights["projection"])
        pooled = attention @ (x @ weights[f"value_{layer}"]) @ out
        x = _normed(weights, weights["attention_residual"] * x + pooled)
        hidden = relu(x @ weights[f"hidden_{layer}"] + weights[f"hidden_bias_{layer}"])
        back, bias = (weights["feed_forward"] * weights[f"{name}_{layer}"] for name in ("back", "back_bias"))
        return _normed(weights, x + hidden @ back + bias), pooled

    def _minimal(self, one_hot: Float[Tensor, "string row token"]) -> Float[Tensor, "string row d"]:
        """One coordinate for the start token, and one for each bracket at each depth; the end token has none."""
        k, m = self.language.n_types, self.language.depth
        opens, closes = one_hot[..., :k].sum(dim=-1), one_hot[..., k : 2 * k].sum(dim=-1)
        # A closing bracket lies at the depth of the one it closes.
        level = (opens - closes).cumsum(dim=-1) + closes
        at = (level[..., None] == torch.arange(1, m + 1, device=level.device)).to(one_hot.dtype)
        pairs = (at[..., :, None] * one_hot[..., None, : 2 * k]).flatten(-2)
        begin = one_hot[..., self.language.begin :]
        return pad(torch.cat([begin, pairs], dim=-1), (0, self.width - 1 - 2 * k * m))


def _attention(scores: Float[Tensor, "string row key"]) -> Float[Tensor, "string row key"]:
    """Softmax over the tokens that each row has read."""
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)


def _normed(weights: Mapping[str, Tensor], x: Float[Tensor, "string row d"]) -> Float[Tensor, "string row d"]:
    # At 0 and at 1, lerp gives one of the two exactly.
    return torch.lerp(x, layer_norm(x, x.shape[-1:]), weights["norm"])
