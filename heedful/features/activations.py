"""Activations of the tokens of texts at one layer of any layered model; special tokens and padding are left out."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final
from weakref import WeakSet

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, Unsupported, brief, in_short
from heedful.family import check_count, check_seed
from heedful.features.source import Source, stretches
from heedful.models import Model, check_model
from heedful.models.attention_hook import Attended, heard, is_heard, still
from heedful.models.budget import PASS_MEMORY
from heedful.models.language import first_tokens
from heedful.models.language.activations import Site, find_sites, record_activations, replace_at
from heedful.models.language.read_tokens import special_ids
from heedful.models.layered import LayeredModel
from heedful.models.recording import OneTower
from heedful.models.training_loop import shuffled

_MEMORY = {"cpu": PASS_MEMORY, "cuda": 8 * PASS_MEMORY}
"""Bytes of a pass. What is free on a GPU would change the batches, and with them the rounding, from run to run."""

_EMPTY = "The texts contain no tokens but special ones; give texts with words."


def find_site(model: Model, part: str, layer: int) -> Site:
    """The site of a part in one layer; of an encoder-decoder in its encoder, which reads the text."""
    sites = _sites(model, part)
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < len(sites):
        layers = f"layers 0 to {len(sites) - 1}" if len(sites) > 1 else "layer 0 alone"
        raise BadInput(f"The model has {layers}; layer {in_short(layer)} was given.")
    return sites[layer]


def middle_layer(model: Model, part: str = "residual") -> int:
    """The layer in the middle, the upper one of two."""
    return len(_sites(model, part)) // 2


def _sites(model: Model, part: str) -> list[Site]:
    check_model(model)
    if not isinstance(model, LayeredModel):
        name = model.family or type(getattr(model, "network", model)).__name__
        raise Unsupported(f"The model has no layers whose activations can be read ({name}); give a transformer.")
    return [site for site in find_sites(model, part) if site.source != isinstance(model, OneTower)]


_ADDED: WeakSet[nn.Module] = WeakSet()
"""Modules whose output is what their layer adds."""


@torch.no_grad()
def check_added(model: LayeredModel, document: Document, site: Site) -> None:
    """Refuses a part that its layer norms or scales before it adds it, as Gemma 2 and Granite do.

    In one pass over the document some vector in the layer, what leaves it or enters a module, must be another one plus
    what the part gives, and where attention and MLP work side by side plus what the other gives.
    """
    if site.part == "residual" or site.module in _ADDED:
        return
    layer = find_site(model, "residual", site.layer).module
    given: dict[str, Tensor] = {}
    vectors: list[Tensor] = []

    def take(tensors: Iterable[Any]) -> None:
        # Some layers add in place.
        vectors.extend(x.detach().clone() for x in tensors if isinstance(x, Tensor) and x.dim() == 3)

    def enter(_: nn.Module, args: tuple[Any, ...], others: dict[str, Any]) -> None:
        take((*args, *others.values()))

    def leave(_: nn.Module, _args: tuple[Any, ...], output: Any) -> None:
        take(output if isinstance(output, tuple) else (output,))

    def keep(own: Site, x: Tensor) -> Tensor:
        given[own.part] = x.detach().clone()
        return x

    sites = [site]
    with suppress(Unsupported):
        sites.append(find_site(model, "mlp" if site.part == "attention" else "attention", site.layer))
    with still(model.network), heard(model.network, Attended.output), ExitStack() as hooks:
        for own in sites:
            hooks.callback(replace_at(own, keep).remove)
        for module in layer.modules():
            hooks.callback(module.register_forward_pre_hook(enter, with_kwargs=True).remove)
        hooks.callback(layer.register_forward_hook(leave).remove)
        model.forward(model.embed([document]), [document])
    own, others = given.pop(site.part), [0.0, *given.values()]
    vectors = [x for x in vectors if x.shape == own.shape]
    rests = [x - own - other for x in vectors for other in others]
    if not any((rest - x).norm() <= _CLOSE * own.norm() for rest in rests for x in vectors):
        raise Unsupported(
            f"{type(model.network).__name__} changes the output of its {site.part} before a layer adds it, so the part "
            "cannot be read; use the part 'residual'."
        )
    _ADDED.add(site.module)


_CLOSE = 1e-3


@final
@dataclass(frozen=True, eq=False)
class TextRows:
    """Activations of the tokens of some documents, in their order, and which token of which document each row is."""

    x: Float[Tensor, "row d_e"]
    document: Int[np.ndarray, "row"]
    token: Int[np.ndarray, "row"]

    __repr__ = brief


def text_rows(model: LayeredModel, documents: Sequence[Document], site: Site) -> TextRows:
    """The activations at a site of every token that is neither special nor padding, in single precision.

    The forward pass stops behind the site. The rows stay on the model's device. Texts of similar length share a batch.
    """
    places = [np.flatnonzero(is_read(model, document, site)) for document in documents]
    counts = np.array([len(place) for place in places], dtype=np.int64)
    starts = np.append(0, np.cumsum(counts))
    if not starts[-1]:
        raise BadInput(_EMPTY)
    rows = x = torch.empty(0)
    with torch.no_grad(), still(model.network):
        for batch in _batches(model, documents, np.flatnonzero(counts).tolist()):
            x = stopped_behind(model, [documents[n] for n in batch], site)
            if not len(rows):
                rows = x.new_empty(int(starts[-1]), x.shape[-1], dtype=torch.float32)
            to = np.concatenate([np.arange(starts[n], starts[n + 1]) for n in batch])
            row, token = np.repeat(np.arange(len(batch)), counts[batch]), np.concatenate([places[n] for n in batch])
            to, row, token = (torch.from_numpy(index).to(x.device) for index in (to, row, token))
            rows[to] = x[row, token].float()
    if not rows.isfinite().all():
        raise BadInput(
            f"Activations of layer {site.layer} ({site.part}) are not finite numbers in {x.dtype}; load the model in a "
            "wider type, or check its weights."
        )
    return TextRows(rows, np.repeat(np.arange(len(places)), counts), np.concatenate(places))


def is_read(model: LayeredModel, document: Document, site: Site) -> Bool[np.ndarray, "token"]:
    """Which tokens have a row: those of the text, and of an encoder-decoder those that its encoder reads.

    A special token that is written out in the text has none, as nothing is clamped at it.
    """
    real = document.words != SPECIAL
    if document.picture is None:
        real = real & ~np.isin(document.ids, special_ids(model))
    return real & (document.segments == 0) if site.source and document.segments is not None else real


def _batches(model: LayeredModel, documents: Sequence[Document], numbers: Sequence[int]) -> Iterator[list[int]]:
    """The numbers of documents that share a pass, the longest first; of equal length if the model requires it."""
    memory = _MEMORY.get(next(model.network.parameters()).device.type, PASS_MEMORY)
    waiting = sorted(numbers, key=lambda n: -len(documents[n].ids))
    while waiting:
        longest = documents[waiting[0]]
        batch = waiting[: model.masks_at_once(longest, memory)]
        if not model.ragged:
            batch = [n for n in batch if len(documents[n].ids) == len(longest.ids)]
        yield batch
        waiting = waiting[len(batch) :]


class _Reached(Exception):
    """Ends a forward pass at the site whose activations are wanted."""


def stopped_behind(
    model: LayeredModel,
    documents: Sequence[Document],
    site: Site,
    embeddings: Float[Tensor, "batch token _"] | None = None,
    hidden: Bool[Tensor, "batch token"] | None = None,
) -> Float[Tensor, "batch _ d_e"]:
    """The activations of every token at a site, from a pass that stops there; whoever listens to it goes on hearing it.

    Texts may enter by other vectors than their own, and with tokens hidden from all attention.
    """
    reached: list[Tensor] = []

    def stop(_: Site, x: Tensor) -> Tensor:
        reached.append(x)
        raise _Reached

    with suppress(_Reached), ExitStack() as hooks:
        # A model that is heard reads every row in full: it caches no prefix that its texts have in common.
        if not is_heard(model.network):
            hooks.enter_context(heard(model.network, Attended.output))
        hooks.callback(replace_at(site, stop).remove)
        model.forward(model.embed(documents) if embeddings is None else embeddings, documents, hidden)
    n_tokens = max(int(np.flatnonzero(np.append(True, is_read(model, document, site)))[-1]) for document in documents)
    if not reached or reached[0].dim() != 3 or len(reached[0]) != len(documents) or reached[0].shape[1] < n_tokens:
        raise Unsupported(
            f"Layer {site.layer} of {type(model.network).__name__} does not have a vector of every token."
        )
    return reached[0]


@final
class TextSource(Source):
    """Activations of texts, chunk by chunk: the texts in another order in every pass, the rows shuffled in a chunk.

    Every text is tokenized once; 17 bytes a token are kept. A chunk takes about three times 4 · rows · d_e bytes on the
    model's device, and a forward pass at most half a gigabyte, or four on a GPU. A model of images reads images.
    """

    def __init__(
        self,
        model: Model,
        layer: int,
        texts: Sequence[Any],
        part: str = "residual",
        seed: int = 0,
        rows_a_chunk: int = 65_536,
    ) -> None:
        self.site = find_site(model, part, layer)
        assert isinstance(model, LayeredModel)
        texts = [] if isinstance(texts, str) or not isinstance(texts, Iterable) else list(texts)
        if not texts:
            raise BadInput("Activations are read from texts; give a list of at least one.")
        check_count("The number of rows in a chunk", rows_a_chunk)
        check_seed(seed)
        self.model, self.texts, self.seed = model, texts, seed
        self.n_special = self.n_truncated = 0
        self._documents: list[Document | None] = []
        self._counts, digest = self._tokenized()
        self.n_rows = int(self._counts.sum())
        """The number of rows in a pass over the texts."""
        if not self.n_rows:
            raise BadInput(_EMPTY)
        shortest = self._document(int(np.where(self._counts, self._counts, self.n_rows + 1).argmin()))
        # A whole pass: it refuses layers that run more than once.
        self.d_e = record_activations(model, [shortest], [self.site]).at[self.site].shape[-1]
        check_added(model, shortest, self.site)
        name, place = model.family or type(model.network).__name__, {"part": part, "layer": layer}
        self.origin = {"model": model.fingerprint, "model_name": name, **place}
        self.data = f"{self.n_rows:,} tokens of {len(texts):,} texts {digest}"
        self.rows_a_chunk = rows_a_chunk

    @property
    def about(self) -> str:  # type: ignore[override]
        """The texts by a hash, the place, and the order of the rows."""
        place = f"{self.site.part} {self.site.layer} of {self.origin['model']}"
        return f"{self.data}, {place}, {self.rows_a_chunk:,} a chunk, seed {self.seed}"

    def _tokenized(self) -> tuple[Int[np.ndarray, "text"], str]:
        """Tokenizes every text: how many rows each has, and a hash of what the model reads."""
        digest, counts = hashlib.sha256(), []
        for text in self.texts:
            document = self.model.encode(text)
            real = is_read(self.model, document, self.site)
            pixels = b"" if document.picture is None else document.picture.pixels.tobytes()
            digest.update(repr((len(real), *document.ids.tolist())).encode() + real.tobytes() + pixels)
            counts.append(int(real.sum()))
            # The tokens of an answer are left out too, where only the encoder is read.
            read = document.segments == 0 if self.site.source and document.segments is not None else real | True
            self.n_special += int((read & ~real).sum())
            self.n_truncated += any(note.kind == "truncated" for note in document.notes)
            # Pixels are too many to be kept.
            self._documents.append(first_tokens(document, len(real)) if document.picture is None else None)
        return np.array(counts, dtype=np.int64), digest.hexdigest()[:16]

    @property
    def left_out(self) -> str:
        """What of the texts has no row, in a sentence; empty if nothing."""
        parts = [f"special tokens ({self.n_special:,})"] if self.n_special else []
        parts += [f"ends of texts above the model's limit ({self.n_truncated:,})"] if self.n_truncated else []
        return f"Left out: {', '.join(parts)}." if parts else ""

    def chunk(self, number: int) -> Float[Tensor, "row d_e"]:
        """A part of the texts, on the model's device."""
        first = number * self.rows_a_chunk
        rows = torch.cat([self.rows(*some) for some in stretches(first, first + self.rows_a_chunk, self.n_rows)])
        return rows[shuffled(len(rows), self.seed, number).to(rows.device)]

    def rows(self, number: int, start: int, end: int) -> Float[Tensor, "row d_e"]:
        """Some rows of a pass, in the order of its texts. Texts that fit into one chunk are read once."""
        if self.n_rows <= self.rows_a_chunk:
            return self.everything[start:end]
        order = shuffled(len(self._counts), self.seed, number).numpy()
        ends = np.cumsum(self._counts[order])
        first, last = np.searchsorted(ends, start, "right"), np.searchsorted(ends, end)
        rows = text_rows(self.model, [self._document(n) for n in order[first : last + 1].tolist()], self.site).x
        before = start - int(ends[first] - self._counts[order[first]])
        return rows[before : before + end - start]

    @cached_property
    def everything(self) -> Float[Tensor, "row d_e"]:
        """The rows of all texts in their order, which are kept."""
        documents = [self._document(number) for number in range(len(self._counts))]
        return text_rows(self.model, documents, self.site).x

    def _document(self, number: int) -> Document:
        kept = self._documents[number]
        return self.model.encode(self.texts[number]) if kept is None else kept
