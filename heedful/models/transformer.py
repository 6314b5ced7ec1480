"""A small transformer whose parts can be switched on and off, so that each can be studied alone.

With every switch off it is the paper's single-layer model (Eqs. (1)–(9)). The paper asks whether its results for one
layer extend to real transformers; here the parts can be added one at a time.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Literal, final

import numpy as np
import torch
from einops import einsum
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, relu

from heedful.document import Document
from heedful.errors import BadInput
from heedful.models.attention_hook import Attended, Listener, attend, heard, is_heard, keep_projection
from heedful.models.fingerprint import fingerprint_of
from heedful.models.layered import LayeredModel
from heedful.models.network import Positional, check_positional, check_sizes, positional_table
from heedful.models.readout import READ_FROM, readout_rows
from heedful.models.recording import OneTower
from heedful.models.single_layer import SingleLayer
from heedful.models.vocabulary import SPECIAL_WORDS, UNK, Vocabulary, read_words

NO_TOKEN = -1
"""What is announced as the token of padding."""
Nonlinearity = Literal["none", "relu", "gelu"]
Tied = Literal["no", "query-key", "layers"]
_BEND = {"relu": relu, "gelu": gelu}


@final
@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of Appendix F, and the switches.

    A layer is x ← norm(x·skip + 1/K Σ_i W_o ṽ_i), then, with a non-linearity, x ← norm(x·skip + W_2 bend(W_1 x)).
    `tied` shares W_q = W_k inside a layer ("query-key": Cui et al., 2024) or all weights between layers ("layers").
    `causal` hides later tokens; the logits are then read from the last token instead of [cls].
    """

    depth: int = 1
    skip: bool = False
    norm: bool = False
    nonlinearity: Nonlinearity = "none"
    causal: bool = False
    tied: Tied = "no"
    n_heads: int = 6
    T_max: int = 256
    d_e: int = 128
    d_att: int = 64
    d_out: int = 64
    d_hidden: int = 256
    n_classes: int = 2
    positional: Positional = "equation-3"

    def __post_init__(self) -> None:
        if self.depth < 1 or self.d_e % 2:
            raise BadInput(
                f"A transformer needs at least one layer and an even d_e; {self.depth} and {self.d_e} given."
            )
        check_positional(self.positional)
        sizes = ("depth", "n_heads", "T_max", "d_e", "d_att", "d_out", "d_hidden", "n_classes")
        check_sizes({name: getattr(self, name) for name in sizes})

    @property
    def plain(self) -> bool:
        """Whether there is nothing between attention and the logits, so that W_o of the last layer is W_ℓ."""
        alone = self.depth == 1 or self.tied != "layers"
        return alone and not self.skip and not self.norm and self.nonlinearity == "none"

    def shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """The weights of one layer."""
        K, width = self.n_heads, self.n_classes if self.plain and layer == self.depth - 1 else self.d_e
        shapes = {"W_q": (K, self.d_att, self.d_e), "W_k": (K, self.d_att, self.d_e), "W_v": (K, self.d_out, self.d_e)}
        if self.tied == "query-key":
            del shapes["W_k"]
        shapes |= {
            "W_o": (K, width, self.d_out),
            "b_q": (K, self.d_att),
            "b_k": (K, self.d_att),
            "b_v": (K, self.d_out),
        }
        if self.nonlinearity != "none":
            shapes |= {"W_1": (self.d_hidden, self.d_e), "b_1": (self.d_hidden,)}
            shapes |= {"W_2": (self.d_e, self.d_hidden), "b_2": (self.d_e,)}
        return shapes


@final
class Layer(nn.Module):
    """One layer. Weights have the paper's names; biases exist here and are zero in the paper."""

    def __init__(self, config: TransformerConfig, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        self.weights = nn.ParameterDict({name: nn.Parameter(weight) for name, weight in weights.items()})

    def attention(
        self, x: Float[Tensor, "batch token d_e"], queries: Float[Tensor, "batch query d_e"], mask: Tensor | None
    ) -> Float[Tensor, "batch query _"]:
        """1/K Σ_i W_o ṽ_i for some queries, Eqs. (5)–(9)."""
        w, K = self.weights, self.config.n_heads
        W_k = w["W_q"] if self.config.tied == "query-key" else w["W_k"]
        q = einsum(queries, w["W_q"], "batch query d_e, head d_att d_e -> batch head query d_att") + w["b_q"][:, None]
        k = einsum(x, W_k, "batch key d_e, head d_att d_e -> batch head key d_att") + w["b_k"][:, None]
        v = einsum(x, w["W_v"], "batch key d_e, head d_out d_e -> batch head key d_out") + w["b_v"][:, None]
        W_o = w["W_o"]
        keep_projection(self, lambda: (W_o.transpose(1, 2) / K).flatten(0, 1))
        call = Attended(self, q, k, v, mask, self.config.causal and mask is None, 1 / sqrt(self.config.d_att))
        v_tilde = attend(call)
        return einsum(v_tilde, w["W_o"], "batch head query d_out, head width d_out -> batch query width") / K

    def forward(self, x: Float[Tensor, "batch token d_e"], mask: Tensor | None) -> Float[Tensor, "batch token d_e"]:
        """The logits from those vectors."""
        x = self._joined(x, self.attention(x, x, mask))
        if self.config.nonlinearity == "none":
            return x
        w, bend = self.weights, _BEND[self.config.nonlinearity]
        return self._joined(x, bend(x @ w["W_1"].T + w["b_1"]) @ w["W_2"].T + w["b_2"])

    def _joined(self, x: Tensor, new: Tensor) -> Tensor:
        both = x + new if self.config.skip else new
        return layer_norm(both, both.shape[-1:]) if self.config.norm else both


@final
class TransformerNetwork(nn.Module):
    """Word vectors with positions, Eq. (2), layers, and a linear read-out."""

    W_p: Tensor

    def __init__(
        self, config: TransformerConfig, W_e: Tensor, layers: Sequence[Mapping[str, Tensor]], W_c: Tensor
    ) -> None:
        super().__init__()
        self.config = config
        # Every pass announces the tokens that it reads, so that a hook inside of a layer can know them.
        self.tokens = nn.Identity()
        self.W_e = nn.Parameter(W_e)
        self.W_c = nn.Parameter(W_c)
        self.layers = nn.ModuleList([Layer(config, weights) for weights in layers])
        table = positional_table(config.positional, config.T_max, config.d_e)
        self.register_buffer("W_p", table.to(W_e.dtype), persistent=False)

    def forward(
        self,
        e: Float[Tensor, "batch token d_e"],
        last: Int[Tensor, "batch"],
        hidden: Bool[Tensor, "batch token"] | None,
    ) -> Float[Tensor, "batch class"]:
        """The logits, read from [cls] or, in a causal model, from the last token."""
        x, mask = e, None
        if hidden is not None:
            mask = ~hidden[:, None, None, :]
            if self.config.causal:
                mask = mask & torch.ones(e.shape[1], e.shape[1], dtype=torch.bool, device=e.device).tril()
        order = [self.layers[0]] * self.config.depth if self.config.tied == "layers" else list(self.layers)
        for layer in order[:-1] if self.config.plain else order:
            x = layer(x, mask)
        rows = torch.arange(len(e), device=e.device)
        place = last if self.config.causal else torch.zeros_like(last)
        if not self.config.plain:
            return x[rows, place] @ self.W_c.T
        top = order[-1]
        assert isinstance(top, Layer)
        # Only the row of [cls] is read; a listener gets the whole matrix.
        whole = self.config.causal or is_heard(top)
        return top.attention(x, x if whole else x[:, :1], mask)[rows, place]


def initial_network(config: TransformerConfig, n_words: int, seed: int) -> TransformerNetwork:
    """Initial weights as in `torch.nn`: N(0, 1) for word vectors, U(±1/√inputs) for matrices, zero biases."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(name: str, shape: tuple[int, ...]) -> Tensor:
        if name.startswith("b"):
            return torch.zeros(shape)
        return (2 * torch.rand(shape, generator=generator) - 1) / sqrt(shape[-1])

    n_layers = 1 if config.tied == "layers" else config.depth
    W_e = torch.randn(n_words, config.d_e, generator=generator)
    layers = [{name: drawn(name, shape) for name, shape in config.shapes(layer).items()} for layer in range(n_layers)]
    return TransformerNetwork(config, W_e, layers, drawn("W_c", (config.n_classes, config.d_e)))


@final
class Transformer(LayeredModel, OneTower):
    """The network with a vocabulary and classes, as `heedful train` makes them.

    As in the paper's model, every text is padded to T_max with [unk], which receives attention like any token (Eq.
    (4)).
    """

    replacement_id = UNK

    def __init__(self, network: TransformerNetwork, vocabulary: Vocabulary, classes: Sequence[str]) -> None:
        self.network = network
        self.vocabulary = vocabulary
        self.family = f"transformer of {network.config.depth} layers × {network.config.n_heads} heads"
        self.reads = READ_FROM["last" if network.config.causal else "first"]
        self.classes = tuple(classes)

    @staticmethod
    def of(model: SingleLayer) -> "Transformer":
        """The paper's model as a transformer with every switch off: the same weights and the same outputs."""
        old, c = model.network, model.network.config
        sizes = {
            name: getattr(c, name) for name in ("n_heads", "T_max", "d_e", "d_att", "d_out", "n_classes", "positional")
        }
        names = ("W_q", "W_k", "W_v", "b_q", "b_k", "b_v")
        layer = {name: getattr(old, name).detach().clone() for name in names} | {"W_o": old.W_l.detach().clone()}
        W_e = old.W_e.detach().to(old.W_q.dtype)
        network = TransformerNetwork(TransformerConfig(**sizes), W_e, [layer], W_e.new_zeros(c.n_classes, c.d_e))
        network.W_p.copy_(old.W_p)
        return Transformer(network, model.vocabulary, model.classes)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes."""
        return fingerprint_of(self.network, (*self.classes, *self.vocabulary.words, repr(self.network.config)))

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        return read_words(text, self.vocabulary, self.network.config.T_max)

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        ids = self._padded(documents, UNK)
        return nn.functional.embedding(ids, self.network.W_e) + self.network.W_p

    def _padded(self, documents: Sequence[Document], filler: int) -> Int[Tensor, "batch token"]:
        rows = np.full((len(documents), self.network.config.T_max), filler)
        for row, document in zip(rows, documents, strict=True):
            row[: len(document.ids)] = document.ids
        return torch.from_numpy(rows).to(self.network.W_e.device)

    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """The vector at every token."""
        return (vector + self.network.W_p).expand(len(documents), -1, -1)

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The logits from those vectors."""
        # An unknown word is a token of the text; padding, which is read as one, is not.
        self.network.tokens(self._padded(documents, NO_TOKEN))
        last = torch.tensor([len(document.ids) - 1 for document in documents], device=embeddings.device)
        return self.network(embeddings, last, hidden)

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener receives every attention call."""
        return heard(self.network, listener)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        rows = readout_rows("last" if self.network.config.causal else "first", [len(d.ids) for d in documents])
        wide = rows.new_zeros(len(rows), self.network.config.T_max)
        wide[:, : rows.shape[1]] = rows
        return wide.to(self.network.W_e.device)

    def bytes_a_document(self, n_tokens: int) -> int:  # noqa: ARG002
        """An estimate of the memory of a pass with its gradient."""
        config = self.network.config
        return (
            8 * config.T_max * (config.depth * (4 * config.d_e + 6 * config.n_heads * config.d_att) + config.d_hidden)
        )

    def word_id(self, word: str) -> int:
        """The token of a word that replaces others."""
        return self.vocabulary.id_of(word)

    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:  # noqa: ARG002
        """Zeros, or the mean of the table of word vectors."""
        words = self.network.W_e[len(SPECIAL_WORDS) :]
        return words.mean(dim=0) if kind == "mean" else torch.zeros_like(words[0])
