"""GPT-2: a decoder of L layers that predicts the next token at every position, in the lecture's letters.

    f⁽⁰⁾ = W_e[x] + W_p                              tokens and positions
    h    = f⁽ᵗ⁾ + W_o concat_i A_i(LN(f⁽ᵗ⁾)) + b_o   H masked attention heads, skip connection
    f⁽ᵗ⁺¹⁾ = h + W_2 GELU(W_1 LN(h) + b_1) + b_2     single hidden layer of size 4 d_e, skip connection
    f(x) = softmax(LN(f⁽ᴸ⁾) W_eᵀ)                    the output has the weights of the embedding

References: Radford et al., *Language models are unsupervised multitask learners*, 2019; the lecture, Section 9.2.
Differs from the lecture: a norm stands before each of the two parts and behind the last layer, as in GPT-2 itself, and
GELU is its tanh form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu

from heedful.errors import BadInput
from heedful.models.attention_hook import Attended, attend, keep_projection
from heedful.models.network import check_sizes


@final
@dataclass(frozen=True)
class Gpt2Config:
    """The sizes; the defaults are those of the bundled "writer". `n_tokens` is D, `depth` is L and `n_heads` is H."""

    n_tokens: int = 7_680
    T_max: int = 512
    d_e: int = 256
    depth: int = 6
    n_heads: int = 8
    d_hidden: int = 1_024
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "epsilon"}
        check_sizes(sizes)
        if min(sizes.values()) < 1 or self.d_e % self.n_heads or not self.epsilon > 0:
            raise BadInput(
                f"GPT-2 needs sizes of at least 1, and heads that divide d_e; {self.n_heads} heads and d_e {self.d_e} "
                "were given."
            )


GPT2_SMALL = Gpt2Config(n_tokens=50_257, T_max=1_024, d_e=768, depth=12, n_heads=12, d_hidden=3_072)


@final
@dataclass
class KeyValueCache:
    """The keys and values of every layer at the positions that were read."""

    keys: list[Float[Tensor, "batch head key d_att"]] = field(default_factory=list)
    values: list[Float[Tensor, "batch head key d_out"]] = field(default_factory=list)

    @property
    def n_read(self) -> int:
        """The number of positions."""
        return self.keys[0].shape[2] if self.keys else 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Appends keys and values of a layer, and returns all of them."""
        if layer == len(self.keys):
            self.keys.append(k)
            self.values.append(v)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], k], dim=2)
            self.values[layer] = torch.cat([self.values[layer], v], dim=2)
        return self.keys[layer], self.values[layer]

    def select(self, rows: Int[Tensor, "row"]) -> "KeyValueCache":
        """Some rows, in this order; a row may be repeated."""
        return KeyValueCache([k[rows] for k in self.keys], [v[rows] for v in self.values])


@final
class Gpt2Layer(nn.Module):
    """One layer, f⁽ᵗ⁾ ↦ f⁽ᵗ⁺¹⁾."""

    def __init__(self, config: Gpt2Config, number: int) -> None:
        super().__init__()
        d_e, self.n_heads, self.number = config.d_e, config.n_heads, number
        self.norm_1, self.norm_2 = nn.LayerNorm(d_e, config.epsilon), nn.LayerNorm(d_e, config.epsilon)
        self.W_qkv, self.W_o = nn.Linear(d_e, 3 * d_e), nn.Linear(d_e, d_e)
        self.W_1, self.W_2 = nn.Linear(d_e, config.d_hidden), nn.Linear(config.d_hidden, d_e)

    def attention(
        self, x: Float[Tensor, "batch query d_e"], mask: Tensor | None, cache: KeyValueCache | None
    ) -> Float[Tensor, "batch query d_e"]:
        """A_i = softmax(Q_i K_iᵀ / √d_att) V_i for every head i; concatenated, and mapped by W_o."""
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in self.W_qkv(x).chunk(3, dim=-1))
        if cache is not None:
            k, v = cache.extend(self.number, k, v)
        join = self.W_o
        keep_projection(self, lambda: join.weight.T)
        causal = mask is None and q.shape[2] > 1
        heads = attend(Attended(self, q, k, v, mask, causal, 1 / sqrt(q.shape[-1])))
        return self.W_o(heads.transpose(1, 2).flatten(2))

    def perceptron(self, x: Float[Tensor, "batch query d_e"]) -> Float[Tensor, "batch query d_e"]:
        """W_2 GELU(W_1 x + b_1) + b_2, for every token by itself."""
        return self.W_2(gelu(self.W_1(x), approximate="tanh"))

    def forward(
        self, x: Float[Tensor, "batch query d_e"], mask: Tensor | None = None, cache: KeyValueCache | None = None
    ) -> Float[Tensor, "batch query d_e"]:
        """The vectors after this layer; a mask has True at the keys that a query attends to."""
        h = x + self.attention(self.norm_1(x), mask, cache)
        return h + self.perceptron(self.norm_2(h))


@final
class TiedHead(nn.Module):
    """LN(f⁽ᴸ⁾) W_eᵀ: the output has no weights of its own."""

    def forward(
        self, states: Float[Tensor, "*place d_e"], W_e: Float[Tensor, "vocabulary d_e"]
    ) -> Float[Tensor, "*place vocabulary"]:
        """The logits of every next token."""
        return states @ W_e.T


@final
class Gpt2Network(nn.Module):
    """The embedding, L layers, a last norm, and the embedding again as output."""

    def __init__(self, config: Gpt2Config) -> None:
        super().__init__()
        self.config = config
        # Every pass announces the tokens that it reads next, so that a hook inside of a layer can know them.
        self.tokens = nn.Identity()
        self.W_e = nn.Parameter(torch.zeros(config.n_tokens, config.d_e))
        self.W_p = nn.Parameter(torch.zeros(config.T_max, config.d_e))
        self.layers = nn.ModuleList([Gpt2Layer(config, number) for number in range(config.depth)])
        self.norm = nn.LayerNorm(config.d_e, config.epsilon)
        self.head = TiedHead()

    def embed(self, ids: Int[Tensor, "batch query"]) -> Float[Tensor, "batch query d_e"]:
        """W_e[x], the vectors of tokens without their positions."""
        return embedding(ids, self.W_e)

    def states(
        self,
        e: Float[Tensor, "batch query d_e"],
        seen: Bool[Tensor, "batch query key"] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch query d_e"]:
        """LN(f⁽ᴸ⁾), from word vectors; `seen` says which keys a query attends to, by default all up to its own.

        With a cache these are the positions behind those that were read, which are keys too.
        """
        n_read = 0 if cache is None else cache.n_read
        if n_read + e.shape[1] > self.config.T_max:
            raise BadInput(f"The model reads at most {self.config.T_max:,} tokens; shorten the text.")
        if seen is None and n_read and e.shape[1] > 1:
            seen = up_to_own(e.shape[1], n_read, e.device)
        x = e + self.W_p[n_read : n_read + e.shape[1]]
        for layer in self.layers:
            x = layer(x, None if seen is None else seen[:, None], cache)
        return self.norm(x)

    def logits(self, states: Float[Tensor, "*place d_e"]) -> Float[Tensor, "*place vocabulary"]:
        """LN(f⁽ᴸ⁾) W_eᵀ, the logits of every next token."""
        return self.head(states, self.W_e)

    def forward(self, ids: Int[Tensor, "batch query"]) -> Float[Tensor, "batch query vocabulary"]:
        """The logits of the token after each position."""
        return self.logits(self.states(self.embed(ids)))


def up_to_own(n: int, n_read: int, device: torch.device) -> Bool[Tensor, "batch query key"]:
    """The mask of a decoder: the query behind `n_read` + t others attends to these and to itself."""
    return torch.ones(n, n_read + n, dtype=torch.bool, device=device).tril(n_read)[None]


def initial_gpt2(config: Gpt2Config, seed: int) -> Gpt2Network:
    """Weights as GPT-2's training begins: N(0, 0.02²), for the maps into the skip connection N(0, 0.02² / 2L)."""
    network, rng = Gpt2Network(config), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.dim() > 1:
                inner = name.endswith(("W_o.weight", "W_2.weight"))
                weight.normal_(0, 0.02 / sqrt(2 * config.depth) if inner else 0.02, generator=rng)
            elif name.endswith("bias"):
                weight.zero_()
    return network


def network_with(config: Gpt2Config, weights: Mapping[str, Tensor]) -> Gpt2Network:
    """A network with these weights, in single precision at least."""
    with torch.device("meta"):
        network = Gpt2Network(config)
    wide = {name: weight if weight.dtype == torch.float64 else weight.float() for name, weight in weights.items()}
    network.load_state_dict(wide, assign=True)
    return network.eval()
