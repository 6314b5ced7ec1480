"""The single-layer multi-head attention classifier of Section 2, Eqs. (1)–(9), in the paper's notation.

Reference: Lopardo, Precioso & Garreau, *Attention Meets Post-hoc Interpretability*, ICML 2024, arXiv:2402.03485.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal, final, get_args

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.errors import BadInput, in_short
from heedful.models.attention_hook import Attended, attend, keep_projection
from heedful.models.vocabulary import CLS, UNK

MATRICES = ("W_e", "W_q", "W_k", "W_v", "W_l")
BIASES = ("b_q", "b_k", "b_v")
Positional = Literal["equation-3", "authors", "learned"]
Padding = Literal["unk", "eos"]
LEARNED = ("learned", "halves")
"""The positions that are weights."""
_MOST = 1_000_000


def check_word(name: str, word: str, words: object) -> None:
    """Refuses a setting that is none of the words of its type."""
    if word not in get_args(words):
        raise BadInput(f"{name} is one of {', '.join(get_args(words))}; {word!r} was given.")


@final
@dataclass(frozen=True)
class Config:
    """The sizes of Appendix F. `bias` trains b_k, b_q and b_v, which the paper sets to zero.

    With positional "learned", W_p is trained. With padding "eos", texts are padded with a token of their own, whose
    vector is the last row of W_e, instead of [unk]; both receive attention like any token.
    """

    n_heads: int = 6
    T_max: int = 256
    d_e: int = 128
    d_att: int = 64
    d_out: int = 64
    n_classes: int = 2
    positional: Positional = "equation-3"
    bias: bool = False
    # Not in the text that fingerprints are made from: "eos" has one more row of weights, and older models lack it.
    padding: Padding = field(default="unk", repr=False)

    def __post_init__(self) -> None:
        least = {"n_heads": 1, "d_att": 1, "d_out": 1, "d_e": 2, "T_max": 2, "n_classes": 2}
        if self.d_e % 2 or any(getattr(self, name) < size for name, size in least.items()):
            raise BadInput(f"The model needs an even d_e, and at least {least}.")
        check_word("positional", self.positional, Positional)
        check_word("padding", self.padding, Padding)
        check_sizes({name: getattr(self, name) for name in least})


def check_sizes(sizes: Mapping[str, int]) -> None:
    """Refuses a size that no memory holds."""
    for name, size in sizes.items():
        if size > _MOST:
            raise BadInput(f"{name} is at most {_MOST:,}; {in_short(size)} was given.")


def positional_table(positional: str, T_max: int, d_e: int) -> Float[Tensor, "token d_e"]:
    """W_p(t) for every position.

    "equation-3": base T_max, coordinates and positions counted from 1, W_p(t)_{2i−1} = sin and W_p(t)_{2i} = cos of
    t / T_max^{2i/d_e}. "authors": the table of the authors' code, base 10000, both counted from 0, W_p(t)_{2i} = sin
    and W_p(t)_{2i+1} = cos of t / 10000^{2i/d_e}.
    """
    first, base = (1, T_max) if positional == "equation-3" else (0, 10_000)
    t = torch.arange(T_max, dtype=torch.float64) + first
    i = torch.arange(d_e // 2, dtype=torch.float64) + first
    angle = t[:, None] / base ** (2 * i / d_e)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(T_max, d_e)


def weight_shapes(config: Config, n_words: int) -> dict[str, tuple[int, ...]]:
    """The shape of every weight."""
    K, d_e, d_att, d_out = config.n_heads, config.d_e, config.d_att, config.d_out
    shapes = {"W_e": (n_words + (config.padding == "eos"), d_e), "W_q": (K, d_att, d_e), "W_k": (K, d_att, d_e)}
    shapes |= {"W_v": (K, d_out, d_e), "W_l": (K, config.n_classes, d_out)}
    shapes |= {"b_q": (K, d_att), "b_k": (K, d_att), "b_v": (K, d_out)}
    return shapes | ({"W_p": (config.T_max, d_e)} if config.positional == "learned" else {})


def give_positions(network: nn.Module, positional: str, W_p: Tensor) -> None:
    """Sets W_p of a network: a weight if positions are learned, else a table that its file does not hold."""
    if positional in LEARNED:
        network.register_parameter("W_p", nn.Parameter(W_p))
    else:
        network.register_buffer("W_p", W_p, persistent=False)


@final
class Network(nn.Module):
    """Maps token ids to logits. Only the [CLS] row of attention is computed; whole T×T matrices only by `matrices`."""

    W_p: Tensor

    def __init__(self, config: Config, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        self.W_e, self.W_q, self.W_k, self.W_v, self.W_l = (nn.Parameter(weights[name]) for name in MATRICES)
        self.b_q, self.b_k, self.b_v = (nn.Parameter(weights[name], config.bias) for name in BIASES)
        table = None if config.positional in LEARNED else positional_table(config.positional, config.T_max, config.d_e)
        give_positions(self, config.positional, (weights["W_p"] if table is None else table).to(self.W_q.dtype))

    @property
    def padding_id(self) -> int:
        """The token behind the words of a text: [unk], or the one that ends a text, whose vector is the last row."""
        return len(self.W_e) - 1 if self.config.padding == "eos" else UNK

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token d_e"]:
        """e_t = W_e[ξ_t] + W_p(t), Eq. (2). Padding is a token too, so this includes Eq. (4)."""
        return nn.functional.embedding(ids, self.W_e) + self.W_p

    def query(self, e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch head d_att"]:
        """q of the [CLS] token, Eq. (6)."""
        return einsum(e[:, CLS], self.W_q, "batch d_e, head d_att d_e -> batch head d_att") + self.b_q

    def attention(self, e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch head token"]:
        """α_t for the [CLS] query, Eqs. (5) and (8).

        q·k_t = (W_kᵀq)·e_t + q·b_k, so keys are never computed; the last term is the same for every t and cancels.
        """
        W_kT_q = einsum(self.query(e), self.W_k, "batch head d_att, head d_att d_e -> batch head d_e")
        return torch.softmax(W_kT_q @ e.transpose(1, 2) / sqrt(self.config.d_att), dim=-1)

    def forward(self, e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch class"]:
        """f = 1/K Σ_i W_ℓ ṽ, Eqs. (1), (7) and (9). As Σ_t α_t = 1, ṽ = Σ_t α_t v_t = W_v (Σ_t α_t e_t) + b_v."""
        e_tilde = self.attention(e) @ e
        v_tilde = einsum(e_tilde, self.W_v, "batch head d_e, head d_out d_e -> batch head d_out") + self.b_v
        return einsum(v_tilde, self.W_l, "batch head d_out, head classes d_out -> batch classes") / self.config.n_heads

    def attended(self, e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch class"]:
        """f with explicit keys and values, so that attention goes through the hook; equal to `forward`."""
        k = einsum(e, self.W_k, "batch token d_e, head d_att d_e -> batch head token d_att") + self.b_k[:, None]
        v = einsum(e, self.W_v, "batch token d_e, head d_out d_e -> batch head token d_out") + self.b_v[:, None]
        W_l, n_heads = self.W_l, self.config.n_heads
        keep_projection(self, lambda: (W_l.transpose(1, 2) / n_heads).flatten(0, 1))
        call = Attended(self, self.query(e)[:, :, None], k, v, None, False, 1 / sqrt(self.config.d_att))
        v_tilde = attend(call)[:, :, 0]
        return einsum(v_tilde, self.W_l, "batch head d_out, head classes d_out -> batch classes") / self.config.n_heads

    def rows(self, q: Float[Tensor, "head d_att"]) -> tuple[Float[Tensor, "head d_e"], Float[Tensor, "head class d_e"]]:
        """The vectors that map an embedding to its score and its logits: W_kᵀq/√d_att and W_ℓ W_v of every head."""
        key = einsum(q, self.W_k, "head d_att, head d_att d_e -> head d_e") / sqrt(self.config.d_att)
        return key, einsum(self.W_l, self.W_v, "head classes d_out, head d_out d_e -> head classes d_e")

    def read(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch class"]:
        """f of token ids by table lookup, equal to `forward(embed(ids))` and several times faster on many documents.

        All documents share the [CLS] query, so a word has one q·k and one W_ℓ v per head, apart from its position's
        part; these are computed once however often the word occurs.
        """
        K, n_classes = self.config.n_heads, self.config.n_classes
        key, value = self.rows(self.query(self.embed(ids[:1]))[0])
        look = torch.cat([key, value.flatten(0, 1)])
        used = torch.zeros(len(self.W_e), dtype=torch.bool, device=ids.device)
        used[ids.flatten()] = True
        of_word, of_position = self.W_e[used].to(look) @ look.T, self.W_p @ look.T
        rows = []
        for part in (used.cumsum(0) - 1)[ids].split(256):
            score, w = (nn.functional.embedding(part, of_word) + of_position).split([K, K * n_classes], dim=2)
            w = w.unflatten(2, (K, n_classes))
            rows.append(
                einsum(torch.softmax(score, dim=1), w, "batch token head, batch token head classes -> batch classes")
            )
        constant = einsum(self.W_l, self.b_v, "head classes d_out, head d_out -> classes")
        return (torch.cat(rows) + constant) / K

    def matrices(self, e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch head query key"]:
        """A^(i)_{s,t} = α_t(q_s): the full matrices of Figure 3."""
        q = einsum(e, self.W_q, "batch query d_e, head d_att d_e -> batch head query d_att") + self.b_q[:, None]
        k = einsum(e, self.W_k, "batch key d_e, head d_att d_e -> batch head key d_att") + self.b_k[:, None]
        return torch.softmax(q @ k.transpose(-1, -2) / sqrt(self.config.d_att), dim=-1)
