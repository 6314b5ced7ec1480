"""The single-layer multi-head attention classifier of Section 2, Eqs. (1)–(9), in the paper's letters.

Reference: Lopardo, Precioso & Garreau, *Attention Meets Post-hoc Interpretability*, ICML 2024, arXiv:2402.03485.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Literal, final

import numpy as np
import torch
from einops import einsum
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from heedful.document import SPECIAL, Absence, Document
from heedful.errors import BadCheckpoint, BadInput
from heedful.models import Model, Offer
from heedful.models.parts import Parts
from heedful.settings import build
from heedful.tokens import CLS, SPECIAL_WORDS, UNK, Vocabulary, split_plain, split_words
from heedful.trace import Trace

FORMAT = "heedful/single-layer/1"
MATRICES = ("W_e", "W_q", "W_k", "W_v", "W_l")
BIASES = ("b_q", "b_k", "b_v")
Positional = Literal["equation-3", "authors"]


@final
@dataclass(frozen=True)
class Config:
    """The sizes of Appendix F. `bias` trains b_k, b_q and b_v, which the paper sets to zero."""

    n_heads: int = 6
    T_max: int = 256
    d_e: int = 128
    d_att: int = 64
    d_out: int = 64
    n_classes: int = 2
    positional: Positional = "equation-3"
    bias: bool = False

    def __post_init__(self) -> None:
        least = {"n_heads": 1, "d_att": 1, "d_out": 1, "d_e": 2, "T_max": 2, "n_classes": 2}
        if self.d_e % 2 or any(getattr(self, name) < size for name, size in least.items()):
            raise BadInput(f"The model needs an even d_e, and at least {least}.")


def positional_table(positional: Positional, T_max: int, d_e: int) -> Float[Tensor, "token d_e"]:
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
    K, d_e, d_att, d_out = config.n_heads, config.d_e, config.d_att, config.d_out
    shapes = {"W_e": (n_words, d_e), "W_q": (K, d_att, d_e), "W_k": (K, d_att, d_e), "W_v": (K, d_out, d_e)}
    return {**shapes, "W_l": (K, config.n_classes, d_out), "b_q": (K, d_att), "b_k": (K, d_att), "b_v": (K, d_out)}


@final
class Network(nn.Module):
    """Token numbers to logits. Only the [CLS] row of attention is computed, never a T×T matrix, save by `matrices`."""

    W_p: Tensor

    def __init__(self, config: Config, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        self.W_e, self.W_q, self.W_k, self.W_v, self.W_l = (nn.Parameter(weights[name]) for name in MATRICES)
        self.b_q, self.b_k, self.b_v = (nn.Parameter(weights[name], config.bias) for name in BIASES)
        table = positional_table(config.positional, config.T_max, config.d_e)
        self.register_buffer("W_p", table.to(self.W_q.dtype), persistent=False)

    def embed(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch token d_e"]:
        """e_t = W_e[ξ_t] + W_p(t), Eq. (2). Padding holds [UNK], so Eq. (4) is the same line."""
        return nn.functional.embedding(ids, self.W_e) + self.W_p

    def query(self, e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch head d_att"]:
        """q of the [CLS] token, Eq. (6)."""
        return einsum(e[:, CLS], self.W_q, "batch d_e, head d_att d_e -> batch head d_att") + self.b_q

    def attention(self, e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch head token"]:
        """α_t for the [CLS] query, Eqs. (5) and (8).

        q·k_t = (W_kᵀq)·e_t + q·b_k, so no key is ever formed; the last term is the same for every t and cancels.
        """
        W_kT_q = einsum(self.query(e), self.W_k, "batch head d_att, head d_att d_e -> batch head d_e")
        return torch.softmax(W_kT_q @ e.transpose(1, 2) / sqrt(self.config.d_att), dim=-1)

    def forward(self, e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch class"]:
        """f = 1/K Σ_i W_ℓ ṽ, Eqs. (1), (7) and (9). As Σ_t α_t = 1, ṽ = Σ_t α_t v_t = W_v (Σ_t α_t e_t) + b_v."""
        e_tilde = self.attention(e) @ e
        v_tilde = einsum(e_tilde, self.W_v, "batch head d_e, head d_out d_e -> batch head d_out") + self.b_v
        return einsum(v_tilde, self.W_l, "batch head d_out, head classes d_out -> batch classes") / self.config.n_heads

    def rows(self, q: Float[Tensor, "head d_att"]) -> tuple[Float[Tensor, "head d_e"], Float[Tensor, "head class d_e"]]:
        """What makes an embedding a score and a share of each logit: W_kᵀq/√d_att and W_ℓ W_v of every head."""
        key = einsum(q, self.W_k, "head d_att, head d_att d_e -> head d_e") / sqrt(self.config.d_att)
        return key, einsum(self.W_l, self.W_v, "head classes d_out, head d_out d_e -> head classes d_e")

    def read(self, ids: Int[Tensor, "batch token"]) -> Float[Tensor, "batch class"]:
        """f of token numbers by look-up, equal to `forward(embed(ids))` and several times faster on many documents.

        All documents have the [CLS] query in common, so a word has one q·k and one W_ℓ v a head, up to its position's
        share; they are computed once however often the word occurs.
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


@final
class SingleLayer(Model):
    """The paper's classifier with its vocabulary: texts in, logits out."""

    offers: frozenset[Offer] = frozenset({"masks", "gradients", "attention", "weights"})

    def __init__(self, network: Network, vocabulary: Vocabulary, classes: Sequence[str]) -> None:
        self.network = network
        self.vocabulary = vocabulary
        self.classes = tuple(classes)

    def __repr__(self) -> str:
        return f"<single-layer model {self.fingerprint}: {len(self.vocabulary):,} words, {', '.join(self.classes)}>"

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        digest = hashlib.sha256(repr((self.network.config, self.classes, self.vocabulary.words)).encode())
        for name, tensor in sorted(self.network.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().numpy())
        return digest.hexdigest()[:16]

    def encode(self, text: str) -> Document:
        """[cls], then at most T_max − 1 words; a longer text is cut, and the document says so."""
        room = self.network.config.T_max - 1
        words = split_words(text)
        read, left = words[:room], len(words) - room
        ids = np.concatenate([[CLS], self.vocabulary.ids(word.text for word in read)])
        known = ids != UNK
        notes = []
        if left > 0:
            notes.append(f"Only the first {room:,} words were read; the model has no room for the last {left:,}.")
        if not known.all():
            strange = ", ".join(dict.fromkeys(w.text for w, k in zip(read, known[1:], strict=True) if not k))
            shown = strange if len(strange) <= 80 else strange[:80] + "…"
            notes.append(f"{int((~known).sum())} of {len(read)} words are unknown to the model: {shown}")
        return Document(
            text=text,
            ids=ids,
            pieces=("[cls]", *(word.text for word in read)),
            spans=((0, 0), *((word.start, word.end) for word in read)),
            words=np.arange(len(read) + 1) + SPECIAL,
            known=known,
            notes=tuple(notes),
        )

    def predict(self, texts: Sequence[str]) -> Float[np.ndarray, "batch class"]:
        return self.predict_ids([np.concatenate([[CLS], self.vocabulary.ids(split_plain(text))]) for text in texts])

    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        return self.predict_ids([document.ids for document in documents])

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        return self.network.embed(self.padded([document.ids for document in documents]))

    def forward(self, embeddings: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch class"]:
        return self.network(embeddings)

    @torch.no_grad()
    def trace(self, documents: Sequence[Document]) -> Trace:
        return Trace(self.network.attention(self.embed(documents))[:, None].double().cpu().numpy())

    @torch.no_grad()
    def maps(self, document: Document) -> Float[np.ndarray, "layer head query key"]:
        whole = self.network.matrices(self.embed([document]))
        return whole[:, :, : len(document.ids)].double().cpu().numpy()

    def padded(self, ids: Sequence[Int[np.ndarray, "_"]]) -> Int[Tensor, "batch token"]:
        """Token numbers cut at T_max and filled up with [UNK], which is attended like any token (Eq. (4))."""
        rows = np.full((len(ids), self.network.config.T_max), UNK)
        for row, numbers in zip(rows, ids, strict=True):
            row[: len(numbers)] = numbers[: len(row)]
        return torch.from_numpy(rows).to(self.network.W_e.device)

    @torch.no_grad()
    def predict_ids(self, ids: Sequence[Int[np.ndarray, "_"]]) -> Float[np.ndarray, "batch class"]:
        """f of token numbers, [cls] first."""
        read = self.network.read(self.padded(ids)) if ids else torch.zeros(0, len(self.classes))
        return read.double().cpu().numpy()

    @torch.no_grad()
    def masked(
        self,
        document: Document,
        target: Float[np.ndarray, "class"],
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
    ) -> Float[np.ndarray, "mask"]:
        """target · f on every mask without a forward pass, in double precision."""
        parts = self.parts(document, target)
        kept = torch.from_numpy(keep).to(parts.s_pos.device)
        of_masks = parts.replaced if absence == "replace" else parts.deleted
        # A million tokens at a time keep memory flat in the number of masks.
        portions = kept.split(max(1, 1_000_000 // kept.shape[1]))
        return torch.cat([of_masks(portion) for portion in portions]).cpu().numpy()

    @torch.no_grad()
    def parts(self, document: Document, target: Float[np.ndarray, "class"]) -> Parts:
        """Scores and values of the document's words and of [UNK], each head's, in double precision."""
        net = self.network
        key, values = (x.double() for x in net.rows(net.query(net.embed(self.padded([document.ids])))[0]))
        W_e, W_p, c = net.W_e[[UNK, *document.ids]].double(), net.W_p.double(), torch.from_numpy(target).to(key)
        value = einsum(c, values, "classes, head classes d_e -> head d_e")
        constant = einsum(c, net.W_l.double(), net.b_v.double(), "classes, head classes d_out, head d_out -> head")
        s_word, w_word = key @ W_e.T, value @ W_e.T
        s_pos, w_pos = key @ W_p.T, value @ W_p.T + constant[:, None]
        return Parts(s_word[:, 1:], w_word[:, 1:], s_word[:, 0], w_word[:, 0], s_pos, w_pos)

    def save(self, path: Path, card: dict[str, object]) -> None:
        """Writes model, vocabulary and card into one safetensors file, embeddings in half precision."""
        tensors = {name: tensor.cpu().float().contiguous() for name, tensor in self.network.state_dict().items()}
        tensors["W_e"] = tensors["W_e"].half()
        metadata = {
            "format": FORMAT,
            "config": json.dumps(asdict(self.network.config)),
            "classes": json.dumps(self.classes),
            "words": "\n".join(self.vocabulary.words),
            "card": json.dumps(card),
        }
        save_file(tensors, path, metadata)
        path.chmod(0o644)

    @staticmethod
    def load(path: Path) -> "SingleLayer":
        """Reads what `save` wrote.

        Only the embeddings, nearly all of the memory, are held in single precision; everything that is computed from
        them is in double, so that a batch gives what its documents give alone.
        """
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != FORMAT:
                    raise BadCheckpoint(f"{path.name} is a safetensors file, but not a model that heedful wrote.")
                tensors = {name: file.get_tensor(name).double() for name in file.keys() if name != "W_e"}  # noqa: SIM118
                tensors["W_e"] = file.get_tensor("W_e").float()
            config = build(Config, "the model", json.loads(metadata["config"]))
            vocabulary = Vocabulary(tuple(metadata["words"].split("\n")))
            classes = json.loads(metadata["classes"])
            if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != weight_shapes(
                config, len(vocabulary)
            ):
                raise ValueError("its weights do not have the shapes its settings promise")
            if len(classes) != config.n_classes or vocabulary.words[:2] != SPECIAL_WORDS:
                raise ValueError("its classes or its words are not those of a model")
            if not all(tensor.isfinite().all() for tensor in tensors.values()):
                raise ValueError("some weights are not finite numbers")
        except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
            reason = (
                "it is damaged or of another kind" if isinstance(error, SafetensorError) else str(error).rstrip(".")
            )
            raise BadCheckpoint(f"{path.name} is not a whole heedful model: {reason}.") from error
        return SingleLayer(Network(config, tensors), vocabulary, classes)
