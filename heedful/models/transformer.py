"""A small transformer whose parts can be switched on and off, so that each can be studied alone.

With every switch off it is the paper's single-layer model (Eqs. (1)–(9)). The paper asks whether its results for one
layer extend to real transformers; here the parts can be added one at a time.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from math import sqrt
from typing import final

import numpy as np
import torch
from einops import einsum
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, relu

from heedful.document import SPECIAL, Document
from heedful.models.attention_hook import Attended, Listener, attend, heard, is_heard, keep_projection
from heedful.models.fingerprint import fingerprint_of
from heedful.models.layered import LayeredModel
from heedful.models.network import LEARNED, give_positions, positional_table
from heedful.models.readout import READ_FROM, readout_rows
from heedful.models.recording import OneTower
from heedful.models.single_layer import SingleLayer
from heedful.models.switched.config import TransformerConfig
from heedful.models.vocabulary import SPECIAL_WORDS, UNK, Vocabulary, read_words

NO_TOKEN = -1
"""What is announced as the token of padding."""
_BEND = {"relu": relu, "gelu": gelu}


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
        if self.config.values == "identity":
            v, W_o = x[:, None].expand(-1, K, -1, -1), torch.eye(x.shape[-1]).to(x).expand(K, -1, -1)
        else:
            v = einsum(x, w["W_v"], "batch key d_e, head d_out d_e -> batch head key d_out") + w["b_v"][:, None]
            W_o = w["W_o"]
        keep_projection(self, lambda: (W_o.transpose(1, 2) / K).flatten(0, 1))
        call = Attended(self, q, k, v, mask, self.config.causal and mask is None, 1 / sqrt(self.config.d_att))
        v_tilde = attend(call)
        return einsum(v_tilde, W_o, "batch head query d_out, head width d_out -> batch query width") / K

    def forward(
        self, x: Float[Tensor, "batch token d_e"], mask: Tensor | None, normed: bool = True
    ) -> Float[Tensor, "batch token d_e"]:
        """The vectors after this layer, `normed` at its end if the model has norms."""
        bends = self.config.nonlinearity != "none"
        x = self._joined(x, self.attention(x, x, mask), normed or bends)
        if not bends:
            return x
        w, bend = self.weights, _BEND[self.config.nonlinearity]
        return self._joined(x, bend(x @ w["W_1"].T + w["b_1"]) @ w["W_2"].T + w["b_2"], normed)

    def _joined(self, x: Tensor, new: Tensor, normed: bool) -> Tensor:
        both = x + new if self.config.skip else new
        return layer_norm(both, both.shape[-1:]) if self.config.norm and normed else both


@final
class TransformerNetwork(nn.Module):
    """Word vectors with positions, Eq. (2), layers, and a linear read-out."""

    W_p: Tensor

    def __init__(
        self,
        config: TransformerConfig,
        W_e: Tensor,
        layers: Sequence[Mapping[str, Tensor]],
        W_c: Tensor,
        W_p: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        # Every pass announces the tokens that it reads, so that a hook inside of a layer can know them.
        self.tokens = nn.Identity()
        self.W_e = nn.Parameter(W_e)
        self.W_c = nn.Parameter(W_c)
        self.layers = nn.ModuleList([Layer(config, weights) for weights in layers])
        if W_p is None:
            W_p = positional_table(config.positional, config.T_max, config.d_e).to(W_e.dtype)
        give_positions(self, config.positional, W_p * 0 if config.positional == "none" else W_p)

    @property
    def padding_id(self) -> int:
        """The token behind the words of a text: [unk], or the one that ends a text, whose vector is the last row."""
        return len(self.W_e) - 1 if self.config.padding == "eos" else UNK

    def at_positions(self, vectors: Float[Tensor, "*token d_e"]) -> Float[Tensor, "*batch d_e"]:
        """Word vectors with their positions, Eq. (2): their sum, or the halves of both."""
        if self.config.positional != "halves":
            return vectors + self.W_p
        half = vectors.shape[-1] // 2
        words = vectors[..., :half].expand(*vectors.shape[:-2], len(self.W_p), -1)
        return torch.cat([words, self.W_p[:, half:].expand_as(words)], dim=-1)

    def forward(
        self,
        e: Float[Tensor, "batch token d_e"],
        last: Int[Tensor, "batch"],
        hidden: Bool[Tensor, "batch token"] | None,
    ) -> Float[Tensor, "batch class"]:
        """The logits, read from [cls] or from the last token."""
        x, mask = e, None
        if hidden is not None:
            mask = ~hidden[:, None, None, :]
            if self.config.causal:
                mask = mask & torch.ones(e.shape[1], e.shape[1], dtype=torch.bool, device=e.device).tril()
        order = [self.layers[0]] * self.config.depth if self.config.tied == "layers" else list(self.layers)
        for number, layer in enumerate(order[:-1] if self.config.plain else order, start=1):
            x = layer(x, mask, self.config.last_norm or number < len(order))
        rows = torch.arange(len(e), device=e.device)
        place = last if self.config.reads_last else torch.zeros_like(last)
        if not self.config.plain:
            return x[rows, place] @ self.W_c.T
        top = order[-1]
        assert isinstance(top, Layer)
        # Only the row of [cls] is read; a listener gets the whole matrix.
        whole = self.config.reads_last or is_heard(top)
        return top.attention(x, x if whole else x[:, :1], mask)[rows, place]


def initial_network(config: TransformerConfig, n_words: int, seed: int) -> TransformerNetwork:
    """Initial weights as in `torch.nn`: N(0, 1) for vectors of words and positions, U(±1/√inputs) for matrices.

    Biases are zero.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(name: str, shape: tuple[int, ...]) -> Tensor:
        if name.startswith("b"):
            return torch.zeros(shape)
        return (2 * torch.rand(shape, generator=generator) - 1) / sqrt(shape[-1])

    n_layers, half = 1 if config.tied == "layers" else config.depth, config.d_e // 2
    W_e = torch.randn(n_words + (config.padding == "eos"), config.d_e, generator=generator)
    layers = [{name: drawn(name, shape) for name, shape in config.shapes(layer).items()} for layer in range(n_layers)]
    W_c, W_p = drawn("W_c", (config.n_classes, config.d_e)), None
    if config.positional in LEARNED:
        W_p = torch.randn(config.T_max, config.d_e, generator=generator)
    if W_p is not None and config.positional == "halves":
        W_e[:, half:], W_p[:, :half] = 0.0, 0.0
    return TransformerNetwork(config, W_e, layers, W_c, W_p)


@final
class Transformer(LayeredModel, OneTower):
    """The network with a vocabulary and classes, as `heedful train` makes them.

    As in the paper's model, every text is padded to T_max with [unk], which receives attention like any token (Eq.
    (4)), unless its settings say otherwise.
    """

    replacement_id = UNK

    def __init__(self, network: TransformerNetwork, vocabulary: Vocabulary, classes: Sequence[str]) -> None:
        self.network = network
        self.vocabulary = vocabulary
        self.family = f"transformer of {network.config.depth} layers × {network.config.n_heads} heads"
        self.reads = READ_FROM["last" if network.config.reads_last else "first"]
        self.classes = tuple(classes)

    @staticmethod
    def of(model: SingleLayer) -> "Transformer":
        """The paper's model as a transformer with every switch off: the same weights and the same outputs."""
        old, c = model.network, model.network.config
        same = ("n_heads", "T_max", "d_e", "d_att", "d_out", "n_classes", "positional", "padding")
        sizes = {name: getattr(c, name) for name in same}
        names = ("W_q", "W_k", "W_v", "b_q", "b_k", "b_v")
        layer = {name: getattr(old, name).detach().clone() for name in names} | {"W_o": old.W_l.detach().clone()}
        W_e = old.W_e.detach().to(old.W_q.dtype)
        W_c, W_p = W_e.new_zeros(c.n_classes, c.d_e), old.W_p.detach().clone()
        network = TransformerNetwork(TransformerConfig(**sizes), W_e, [layer], W_c, W_p)
        return Transformer(network, model.vocabulary, model.classes)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes."""
        return fingerprint_of(self.network, (*self.classes, *self.vocabulary.words, self.network.config.identity))

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        return read_words(text, self.vocabulary, self.network.config.T_max)

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        ids = self._padded(documents, self.network.padding_id)
        return self.network.at_positions(nn.functional.embedding(ids, self.network.W_e))

    def _padded(self, documents: Sequence[Document], filler: int) -> Int[Tensor, "batch token"]:
        rows = np.full((len(documents), self.network.config.T_max), filler)
        for row, document in zip(rows, documents, strict=True):
            row[: len(document.ids)] = document.ids
        return torch.from_numpy(rows).to(self.network.W_e.device)

    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """The vector at every token."""
        return self.network.at_positions(vector).expand(len(documents), -1, -1)

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
        return self.network(embeddings, last, self._unseen(documents, hidden))

    def _unseen(
        self, documents: Sequence[Document], hidden: Bool[Tensor, "batch token"] | None
    ) -> Bool[Tensor, "batch token"] | None:
        """The positions that get no attention; None if all do. A text of which nothing is left has [cls]."""
        config = self.network.config
        if config.padding != "hidden":
            return hidden
        seen = np.zeros((len(documents), config.T_max), dtype=bool)
        for row, document in zip(seen, documents, strict=True):
            row[: len(document.ids)] = document.words != SPECIAL
            row[0] |= config.causal or config.read == "cls"
        unseen = torch.from_numpy(~seen).to(self.network.W_e.device)
        if hidden is not None:
            unseen = unseen | hidden
        unseen[:, 0] &= ~unseen.all(dim=1)
        return unseen

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener receives every attention call."""
        return heard(self.network, listener)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        rows = readout_rows("last" if self.network.config.reads_last else "first", [len(d.ids) for d in documents])
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
        words = self.network.W_e[len(SPECIAL_WORDS) : len(self.vocabulary)]
        return words.mean(dim=0) if kind == "mean" else torch.zeros_like(words[0])
