"""The paper's classifier with its vocabulary, and its file format."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import ClassVar, final

import numpy as np
import torch
from einops import einsum
from jaxtyping import Float, Int
from safetensors import SafetensorError
from torch import Tensor, nn

from heedful.document import SPECIAL, Absence, Document, check_text
from heedful.errors import BadCheckpoint, BadInput
from heedful.family import build
from heedful.models import Offer
from heedful.models.attention_hook import Listener, heard, is_heard
from heedful.models.checkpoints import check_sealed, read_config, read_names
from heedful.models.deletion_table import DeletionTable
from heedful.models.network import Config, Network, weight_shapes
from heedful.models.pooling import Evaluator, Pool, Pooling, PoolingModel, in_portions
from heedful.models.readout import READ_FROM
from heedful.models.recording import OneTower
from heedful.models.vocabulary import CLS, SPECIAL_WORDS, UNK, Vocabulary, read_words, split_plain
from heedful.run_folder import read_tensors, write_tensors

FORMAT, _FIRST_FORMAT = "heedful/single-layer/2", "heedful/single-layer/1"
"""The second has a checksum."""


@final
class SingleLayer(PoolingModel, OneTower):
    """The paper's classifier with its vocabulary; it maps texts to logits."""

    reads = READ_FROM["first"]

    provides: ClassVar[frozenset[Offer]] = frozenset({"weights"})

    def __init__(self, network: Network, vocabulary: Vocabulary, classes: Sequence[str]) -> None:
        self.network = network
        self.vocabulary = vocabulary
        self.family = f"single-layer model of {len(vocabulary):,} words"
        self.classes = tuple(classes)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes."""
        digest = hashlib.sha256(repr((self.network.config, self.classes, self.vocabulary.words)).encode())
        for name, tensor in sorted(self.network.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().numpy())
        return digest.hexdigest()[:16]

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        return read_words(text, self.vocabulary, self.network.config.T_max)

    def predict(self, texts: Sequence[str]) -> Float[np.ndarray, "batch class"]:
        """The logits of every text."""
        words = [split_plain(check_text(text)) for text in texts]
        return self.predict_ids([np.concatenate([[CLS], self.vocabulary.ids(some)]) for some in words])

    def logits(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch class"]:
        """The logits of every document."""
        return self.predict_ids([document.ids for document in documents])

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        return self.network.embed(self.padded([document.ids for document in documents]))

    def absent(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The same with every word replaced by the unknown token."""
        return self.network.embed(self.padded([np.where(d.words == SPECIAL, d.ids, UNK) for d in documents]))

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],  # noqa: ARG002
    ) -> Float[Tensor, "batch class"]:
        """The logits from those vectors."""
        return self.network.attended(embeddings) if is_heard(self.network) else self.network(embeddings)

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener receives every attention call."""
        return heard(self.network, listener)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        rows = self.network.W_p.new_zeros(len(documents), self.network.config.T_max, dtype=torch.float64)
        rows[:, CLS] = 1.0
        return rows

    def bytes_a_document(self, n_tokens: int) -> int:  # noqa: ARG002
        """An estimate of the memory of a pass with its gradient."""
        config = self.network.config
        return 8 * config.T_max * (4 * config.d_e + 4 * config.n_heads * config.d_att)

    @torch.no_grad()
    def attention(self, documents: Sequence[Document]) -> Float[np.ndarray, "batch layer head key"]:
        """Attention of the positions that are read out."""
        return self.network.attention(self.embed(documents))[:, None].double().cpu().numpy()

    @torch.no_grad()
    def maps(self, document: Document) -> Float[np.ndarray, "layer head query key"]:
        """The whole attention matrices."""
        whole = self.network.matrices(self.embed([document]))
        return whole[:, :, : len(document.ids)].double().cpu().numpy()

    def padded(self, ids: Sequence[Int[np.ndarray, "_"]]) -> Int[Tensor, "batch token"]:
        """Token ids truncated to T_max and padded; padding receives attention like any token (Eq. (4))."""
        rows = np.full((len(ids), self.network.config.T_max), self.network.padding_id)
        for row, numbers in zip(rows, ids, strict=True):
            row[: len(numbers)] = numbers[: len(row)]
        return torch.from_numpy(rows).to(self.network.W_e.device)

    @torch.no_grad()
    def predict_ids(self, ids: Sequence[Int[np.ndarray, "_"]]) -> Float[np.ndarray, "batch class"]:
        """f of token ids, [cls] first."""
        read = self.network.read(self.padded(ids)) if ids else torch.zeros(0, len(self.classes))
        return read.double().cpu().numpy()

    def evaluator(
        self, document: Document, target: Float[np.ndarray, "class"], absence: Absence, pool: Pool
    ) -> Evaluator:
        """The target of one document as a function of masks."""
        if absence == "delete":
            table = self.deletion_table(document, target)
            return in_portions(table.deleted, table.s_pos.device)
        return in_portions(partial(pool([document], target[None], absence).values, 0), self.network.W_e.device)

    @torch.no_grad()
    def pooling(
        self, documents: Sequence[Document], targets: Float[np.ndarray, "batch class"], absence: Absence
    ) -> Pooling:
        """Scores and values of every position, kept or removed."""
        net, replacement = self.network, self._replacement_vector(absence)
        key, value, constant = self._look(targets)
        W_e, W_p = nn.functional.embedding(self.padded([d.ids for d in documents]), net.W_e).double(), net.W_p.double()
        s_pos = einsum(key, W_p, "head d_e, token d_e -> head token")
        w_pos = einsum(value, W_p, "batch head d_e, token d_e -> batch head token") + constant[..., None]
        s = einsum(key, W_e, "head d_e, batch token d_e -> batch head token") + s_pos
        w = einsum(value, W_e, "batch head d_e, batch token d_e -> batch head token") + w_pos
        if replacement is None:
            return Pooling(s, w, torch.full_like(s, -inf), torch.zeros_like(w))
        s_gone = (key @ replacement)[:, None] + s_pos
        return Pooling(s, w, s_gone.expand_as(s), (value @ replacement)[..., None] + w_pos)

    def _replacement_vector(self, absence: Absence) -> Float[Tensor, "d_e"] | None:
        """The word vector that replaces a removed token's, at the same position; None if there is none."""
        W_e = self.network.W_e
        kind, _, word = absence.partition(":")
        if kind == "mask":
            return None
        if kind == "zero":
            return torch.zeros_like(W_e[0], dtype=torch.float64)
        if kind == "mean":
            return W_e[len(SPECIAL_WORDS) : len(self.vocabulary)].double().mean(dim=0)
        number = int(self.vocabulary.ids([word])[0]) if word else UNK
        if word and number == UNK:
            raise BadInput(f"{word!r} is not in the model's vocabulary, so it cannot replace other words.")
        return W_e[number].double()

    def _look(
        self, targets: Float[np.ndarray, "batch class"]
    ) -> tuple[Float[Tensor, "head d_e"], Float[Tensor, "batch head d_e"], Float[Tensor, "batch head"]]:
        """The vectors that map an embedding to its score and to each target; all texts share the [CLS] query."""
        net = self.network
        key, values = (x.double() for x in net.rows(net.query(net.embed(self.padded([np.array([CLS])])))[0]))
        c = torch.from_numpy(targets).to(key)
        value = einsum(c, values, "batch classes, head classes d_e -> batch head d_e")
        constant = einsum(
            c, net.W_l.double(), net.b_v.double(), "batch classes, head classes d_out, head d_out -> batch head"
        )
        return key, value, constant

    @torch.no_grad()
    def deletion_table(self, document: Document, target: Float[np.ndarray, "class"]) -> DeletionTable:
        """Scores and values of the document's words and of padding, per head, in double precision."""
        net = self.network
        key, values, constants = self._look(target[None])
        W_e, W_p = net.W_e[[net.padding_id, *document.ids]].double(), net.W_p.double()
        s, w = key @ W_e.T, values[0] @ W_e.T
        w_pos = values[0] @ W_p.T + constants[0, :, None]
        return DeletionTable(s[:, 1:], w[:, 1:], s[:, 0], w[:, 0], key @ W_p.T, w_pos)

    def save(self, path: Path, card: dict[str, object]) -> None:
        """Writes weights, vocabulary and card to one safetensors file, with embeddings in half precision."""
        tensors = {name: tensor.float() for name, tensor in self.network.state_dict().items()}
        tensors["W_e"] = tensors["W_e"].half()
        metadata = {
            "format": FORMAT,
            "config": json.dumps(asdict(self.network.config)),
            "classes": json.dumps(self.classes),
            "words": "\n".join(self.vocabulary.words),
            "card": json.dumps(card),
        }
        write_tensors(path, tensors, metadata)

    @staticmethod
    def load(path: Path) -> "SingleLayer":
        """Loads a file that `save` wrote.

        Only the embeddings, nearly all of the memory, are held in single precision; everything computed from them is in
        double precision, so that a batch gives the same values as its documents alone.
        """
        try:
            tensors, metadata = read_tensors(path)
            if metadata.get("format") not in (FORMAT, _FIRST_FORMAT):
                raise BadCheckpoint(f"{path.name} is a safetensors file, but not a heedful model.")
            check_sealed(path, metadata)
            config = build(Config, "the model", read_config(metadata))
            vocabulary, classes = read_names(metadata, config.n_classes)
            shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
            if shapes != weight_shapes(config, len(vocabulary)):
                raise ValueError("the shapes of its weights do not match its settings")
            if not all(tensor.isfinite().all() for tensor in tensors.values()):
                raise ValueError("some weights are not finite numbers")
        except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
            reason = (
                "it is damaged or in another format" if isinstance(error, SafetensorError) else str(error).rstrip(".")
            )
            raise BadCheckpoint(f"{path.name} is not a valid heedful model: {reason}.") from error
        weights = {name: tensor.float() if name == "W_e" else tensor.double() for name, tensor in tensors.items()}
        return SingleLayer(Network(config, weights), vocabulary, classes)
