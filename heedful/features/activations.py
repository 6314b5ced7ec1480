"""Activations of the tokens of texts at one layer of any layered model; special tokens and padding are left out."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, Unsupported, brief, in_short
from heedful.models import Model, check_model
from heedful.models.attention_hook import Attended, heard, is_heard, still
from heedful.models.budget import PASS_MEMORY
from heedful.models.language.activations import Site, find_sites, replace_at
from heedful.models.language.read_tokens import special_ids
from heedful.models.layered import LayeredModel
from heedful.models.recording import OneTower

_MEMORY = {"cpu": PASS_MEMORY, "cuda": 8 * PASS_MEMORY}
"""Bytes of a pass. What is free on a GPU would change the batches, and with them the rounding, from run to run."""

EMPTY = "The texts contain no tokens but special ones; give texts with words."


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
        raise BadInput(EMPTY)
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
