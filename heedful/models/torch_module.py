"""Any torch model of texts that is built on nn.MultiheadAttention, torch's own encoder layers included."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.document import Document, check_text
from heedful.errors import BadInput, Unsupported, describe_error
from heedful.models.attention_hook import ONE_THREAD, Attended, Listener, attend, heard, keep_projection, still
from heedful.models.black_box import are_probabilities
from heedful.models.fingerprint import check_weights, fingerprint_of
from heedful.models.forward_patch import patched_forward
from heedful.models.layered import LayeredModel
from heedful.models.readout import READ_FROM, Reading, counted_forwards, reading_of, readout_rows
from heedful.models.recording import OneTower
from heedful.target import Returns

Splitter = Callable[[str], Sequence[tuple[int, int, int]]]
"""A text as tokens (id, start, end): the id and the characters it covers; start = end for a special token."""


@final
class TorchModule(LayeredModel, OneTower):
    """A module that maps token ids (batch, token) to logits (batch, class).

    Only texts of equal length share a batch, because it is unknown how the module treats padding.
    """

    ragged = False

    def __init__(
        self,
        network: nn.Module,
        splitter: Splitter,
        classes: Sequence[str] | None,
        unknown: int,
        returns: Returns | None = None,
    ) -> None:
        check_weights(network)
        self.network = network
        self.splitter = splitter
        self.replacement_id = unknown
        with counted_forwards(network) as passes:
            self._table, outputs = _entered(network, unknown)
            self._reading: Reading = self._probe()
        self.probe_forwards = len(passes)
        self.reads = "" if "attention" in self.withheld else READ_FROM[self._reading]
        n_classes = outputs.shape[1]
        self.returns = returns or ("probabilities" if are_probabilities(outputs) else "logits")
        self.classes = tuple(f"class {n}" for n in range(n_classes)) if classes is None else tuple(classes)
        if len(self.classes) != n_classes:
            raise BadInput(f"The module returns {n_classes} logits, but {len(self.classes)} classes were named.")

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes."""
        return fingerprint_of(self.network, self.classes)

    def _probe(self) -> Reading:
        """Determines which positions the logits are read from; withholds attention if it cannot be recorded."""
        ids = np.arange(6) % self._table.num_embeddings
        try:
            if not any(isinstance(module, nn.MultiheadAttention) for module in self.network.modules()):
                raise Unsupported("The module contains no nn.MultiheadAttention.")
            return reading_of(self, Document("", ids, ("",) * 6, ((0, 0),) * 6, ids, ids >= 0))
        # What somebody's module raises for six tokens is not foreseeable.
        except Exception as error:
            reason = (
                str(error)
                if isinstance(error, Unsupported)
                else f"The module failed on a probe of six tokens with {describe_error(error)}."
            )
            self.withheld = dict.fromkeys(("attention", "layers"), reason)
            return "first"

    def encode(self, text: object) -> Document:
        """The text as this model reads it."""
        text = check_text(text)
        tokens = self._tokens(text)
        real = np.array([start < end for _, start, end in tokens], dtype=bool)
        return Document(
            text=text,
            ids=np.array([number for number, _, _ in tokens], dtype=np.int64),
            pieces=tuple(text[start:end] or f"[{number}]" for number, start, end in tokens),
            spans=tuple((start, end) for _, start, end in tokens),
            words=np.where(real, np.cumsum(real) - 1, -1),
            known=np.array([number != self.replacement_id for number, _, _ in tokens], dtype=bool) | ~real,
        )

    def _tokens(self, text: str) -> list[tuple[int, int, int]]:
        try:
            tokens = [(int(number), int(start), int(end)) for number, start, end in self.splitter(text)]
        except (TypeError, ValueError):
            raise BadInput("The function that splits a text must return (id, start, end) for every token.") from None
        most = self._table.num_embeddings
        for number, start, end in tokens:
            if not 0 <= number < most or not 0 <= start <= end <= len(text):
                raise BadInput(
                    f"Token ({number}, {start}, {end}) is invalid; the id must be below {most} and the span "
                    "within the text."
                )
        return tokens

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network."""
        ids = torch.from_numpy(np.stack([document.ids for document in documents]))
        with ONE_THREAD:
            return self._table(ids.to(self._table.weight.device))

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The logits from those vectors."""
        if hidden is not None:
            raise Unsupported("Tokens cannot be hidden from this module; set absence to 'replace' or 'delete'.")
        ids = torch.from_numpy(np.stack([document.ids for document in documents])).to(embeddings.device)
        with ONE_THREAD:
            handle = self._table.register_forward_hook(lambda *_: embeddings)
            try:
                return self.network(ids)
            finally:
                handle.remove()

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener receives every attention call."""
        return _listening(self.network, listener)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        return readout_rows(self._reading, [len(d.ids) for d in documents]).to(self._table.weight.device)

    def bytes_a_document(self, n_tokens: int) -> int:
        """An estimate of the memory of a pass with its gradient."""
        n_layers = sum(isinstance(module, nn.MultiheadAttention) for module in self.network.modules())
        return 64 * max(1, n_layers) * self._table.embedding_dim * n_tokens

    def word_id(self, word: str) -> int:
        """The token of a word that replaces others."""
        tokens = [number for number, start, end in self._tokens(word) if start < end]
        if len(tokens) != 1 or tokens[0] == self.replacement_id:
            raise BadInput(f"{word!r} is not a single token of this model, so it cannot replace other words.")
        return int(tokens[0])

    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:  # noqa: ARG002
        """Zeros, or the mean of the table of word vectors."""
        weight = self._table.weight
        return weight.mean(dim=0) if kind == "mean" else torch.zeros_like(weight[0])

    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """The vector at every token."""
        return vector.expand_as(self.embed(documents))


def _entered(network: nn.Module, unknown: int) -> tuple[nn.Embedding, Float[np.ndarray, "batch class"]]:
    """The embedding table that looks up the token ids, and the outputs for two unknown tokens."""
    tables = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    if not tables:
        raise BadInput("The module has no nn.Embedding to look up tokens; give a module that reads token ids.")
    ids = torch.full((1, 2), unknown, device=tables[0].weight.device)
    used: list[nn.Embedding] = []

    def note(module: nn.Embedding, inputs: tuple[Tensor, ...]) -> None:
        if inputs[0].untyped_storage().data_ptr() == ids.untyped_storage().data_ptr():
            used.append(module)

    handles = [table.register_forward_pre_hook(note) for table in tables]
    try:
        with torch.no_grad(), still(network):
            outputs = network(ids).flatten(0, -2).double().cpu().numpy()
    finally:
        for handle in handles:
            handle.remove()
    if not used:
        raise BadInput("None of the module's nn.Embedding looks up the token ids; pass them to one unchanged.")
    return used[0], outputs


@contextmanager
def _listening(network: nn.Module, listener: Listener) -> Iterator[None]:
    modules = [module for module in network.modules() if isinstance(module, nn.MultiheadAttention)]
    with ONE_THREAD:
        fast = torch.backends.mha.get_fastpath_enabled()
        try:
            # torch's encoder layers have a short cut that passes attention by.
            torch.backends.mha.set_fastpath_enabled(False)
            for module in modules:
                out = module.out_proj
                keep_projection(module, lambda out=out: out.weight.T)
            with patched_forward(modules, lambda module: partial(_attention, module)), heard(network, listener):  # type: ignore[arg-type]
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)


def _attention(
    module: nn.MultiheadAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """nn.MultiheadAttention.forward, reimplemented so that q, k and v go through the hook."""
    if module.bias_k is not None or module.add_zero_attn:
        raise Unsupported("nn.MultiheadAttention with add_bias_kv or add_zero_attn adds keys that are not tokens.")
    if not module.batch_first:
        query, key, value = (x.transpose(0, 1) for x in (query, key, value))
    q, k, v = _projected(module, (query, key, value))
    mask = _added(module.num_heads, q.dtype, attn_mask, key_padding_mask)
    call = Attended(module, q, k, v, mask, is_causal and mask is None, q.shape[-1] ** -0.5)
    out = module.out_proj(attend(call).transpose(1, 2).flatten(2))
    weights = None
    if need_weights:
        weights = call.maps().to(out).mean(dim=1) if average_attn_weights else call.maps().to(out)
    return (out if module.batch_first else out.transpose(0, 1)), weights


def _projected(module: nn.MultiheadAttention, inputs: tuple[Tensor, Tensor, Tensor]) -> Iterator[Tensor]:
    """q, k and v of every head."""
    weights = (
        module.in_proj_weight.chunk(3)
        if module.in_proj_weight is not None
        else (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    )
    biases = (None,) * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    for x, weight, bias in zip(inputs, weights, biases, strict=True):
        yield nn.functional.linear(x, weight, bias).unflatten(-1, (module.num_heads, -1)).transpose(1, 2)


def _added(n_heads: int, dtype: torch.dtype, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
    """Both masks combined into one additive mask."""
    mask = None
    for hides in (attn_mask, None if padding is None else padding[:, None, None, :]):
        if hides is None:
            continue
        if hides.dtype == torch.bool:
            hides = torch.zeros_like(hides, dtype=dtype).masked_fill(hides, float("-inf"))
        if hides.dim() == 3:
            hides = hides.unflatten(0, (-1, n_heads))
        mask = hides if mask is None else mask + hides
    return mask
