"""Text that a language model wrote, as a model: its outputs are the log-probabilities of what was written."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.document import Absence, Document
from heedful.errors import BadInput, Unsupported
from heedful.generation.measure import Measure, quantities
from heedful.generation.shared_slopes import SlopeCache, every_slope
from heedful.models import SharedSlopes
from heedful.models.attention_hook import Listener, still
from heedful.models.budget import PASS_MEMORY
from heedful.models.language import LanguageModel, first_tokens
from heedful.models.layered import Derived, padded
from heedful.models.masked_forward import read_masked
from heedful.perturb.sweep import mask_keys
from heedful.target import Returns, Scale, Target, own_scale

_MOST_STORED = 32

Groups = tuple[tuple[int, ...], ...]
"""The positions of the output that are explained together: each token, the tokens of each word, or all."""

Read = Callable[[Any], Document]
"""Makes a document of a prompt, or of a `Pair` of a prompt and an output."""


@final
@dataclass(frozen=True, eq=False)
class Foil:
    """A second text whose values are subtracted: another continuation, or the same one without its context."""

    model: "Continuation"
    document: Document
    origin: tuple[int, ...]
    """For every token of the second document the same token of the first; −1 if it is its own."""
    removed_with: tuple[int, ...] | None = None
    """The same for removal, if it differs: a word may be another token where no context stands before it."""

    def keep(self, keep: Bool[np.ndarray, "mask token"]) -> Bool[np.ndarray, "mask _"]:
        """Masks over the first document as masks over the second."""
        places = np.array(self.removed_with or self.origin)
        return keep[:, places] | (places < 0)

    def embeddings(self, e: Float[Tensor, "batch token d_e"]) -> Float[Tensor, "batch _ d_e"]:
        """The embeddings of the second document, those of shared tokens taken from the first."""
        origin = torch.tensor(self.origin, device=e.device)
        own = self.model.embed([self.document]).expand(len(e), -1, -1)
        return torch.where((origin < 0)[:, None], own, e[:, origin.clamp(min=0)])


@final
@dataclass(eq=False)
class Store:
    """Values of every group at the masks evaluated so far, and gradients: what questions about each group share.

    Values are stored by the model's fingerprint, document, absence, and whether they were computed in half precision.
    """

    values: dict[tuple[str, Document, Absence, bool], dict[bytes, Float[np.ndarray, "class"]]] = field(
        default_factory=dict
    )
    slopes: SlopeCache = field(default_factory=SlopeCache)

    def of(self, model: str, document: Document, absence: Absence, half: bool) -> dict[bytes, Any]:
        """The values of one document by mask; those of the last few documents are kept."""
        known = self.values.setdefault((model, document, absence, half), {})
        if len(self.values) > _MOST_STORED:
            del self.values[next(iter(self.values))]
        return known


@final
class Continuation(Derived, SharedSlopes):
    """A language model that scores an output: its documents are a prompt and, in segment 1, what was written after it.

    Its outputs are Σ log p(o_t | prompt, o_<t) over groups of tokens, by teacher forcing: one pass scores all of them,
    and only at the positions of the output are logits computed. `measure` chooses another quantity. `groups` None is
    the whole output, of any length. Attention is read from the positions that predict the tokens of group `focus`.
    """

    base: LanguageModel
    about_labels = "the model writes text after each text"

    def __init__(
        self,
        base: LanguageModel,
        classes: Sequence[str] = ("the output",),
        groups: Groups | None = None,
        measure: Measure = Measure(),  # noqa: B008
        foil: Foil | None = None,
        store: Store | None = None,
        read: Read | None = None,
        written: tuple[int, ...] | None = None,
    ) -> None:
        self.base = base
        self.classes, self.groups, self.measure, self.foil = tuple(classes), groups, measure, foil
        self.store, self._read, self._written, self.focus = store or Store(), read, written, 0
        self.withheld = base.withheld
        self.family = f"text written by {base.family or type(base.network).__name__}"
        self.reads, self.outputs = "the positions before each token of the output", "parts of the output"
        kinds: dict[str, Returns] = {"log-probability": "log-probabilities", "logit": "logits"}
        self.returns: Returns = kinds.get(measure.name, "scores")

    def focused(self, group: int) -> "Continuation":
        """The same model with the same values, whose attention is read for another group."""
        other = copy(self)
        other.focus = group
        return other

    @property
    def scale(self) -> Scale:
        """The scale of its outputs as they are."""
        return own_scale(self.returns)

    def explained(self, scale: Scale) -> str:
        """The log-probability of the output, or what else is measured."""
        return f"the {scale.replace('logit', self.scale)} of the output"

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        """The language model's, at any time: its network may be changed for a while."""
        return self.base.fingerprint

    def encode(self, text: Any) -> Document:
        """A prompt with what the model writes after it, or a `Pair` of a prompt and an output."""
        if self._read is None:
            raise BadInput("This model has one output, of one prompt; heedful.continuation reads any prompt.")
        return self._read(text)

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The values of every group, from those vectors."""
        values = self._grouped(self.token_values(embeddings, documents, hidden))
        if self.foil is None:
            return values
        copies = [self.foil.document] * len(documents)
        gone = None if hidden is None else ~torch.from_numpy(self.foil.keep(~hidden.cpu().numpy())).to(hidden.device)
        return values - self.foil.model.forward(self.foil.embeddings(embeddings), copies, gone)

    def token_values(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
        n_last: int | None = None,
    ) -> Float[Tensor, "batch query"]:
        """The quantity at the last tokens of the output, by default at all; of shorter outputs zeros come first."""
        longest = embeddings.shape[1] - 1
        n_last = max(map(self.n_written, documents)) if n_last is None else n_last
        seen = None if hidden is None else hidden[:, :longest]
        logits = self.base.token_logits(embeddings[:, :longest], [*map(self._unread, documents)], seen, n_last)
        first = self.n_written(documents[0]) - n_last
        ids, written = padded([self._target_ids(document)[-n_last:][::-1] for document in documents], 0)
        ids, written = (
            torch.nn.functional.pad(x, (0, n_last - x.shape[1])).flip(1).to(logits.device) for x in (ids, written)
        )
        return quantities(self.measure, logits, ids, first).masked_fill(~written, 0.0)

    def token_logits(self, document: Document) -> Float[Tensor, "1 query vocabulary"]:
        """The logits at every position of the output."""
        read = self._unread(document)
        return self.base.token_logits(self.base.embed([read]), [read], None, self.n_written(document))

    def _target_ids(self, document: Document) -> Int[np.ndarray, "query"]:
        """The tokens of the output; where earlier output is a source, a masked copy has others in its place."""
        n = self.n_written(document)
        return document.ids[len(document.ids) - n :] if self._written is None else np.array(self._written[:n])

    def n_written(self, document: Document) -> int:
        """The number of tokens of the output."""
        assert document.segments is not None
        # An encoder-decoder's output begins with a start token, which nobody wrote.
        return int((document.segments == 1).sum()) - (self.base.n_sources([document]) > 0)

    def _unread(self, document: Document) -> Document:
        # Nothing is read from the last token.
        return first_tokens(document, len(document.ids) - 1)

    def _places(self, document: Document) -> slice:
        return slice(len(document.ids) - self.n_written(document), None)

    def _grouped(self, values: Float[Tensor, "batch query"]) -> Float[Tensor, "batch class"]:
        """The sum over the tokens of every group."""
        if self.groups is None:
            return values.sum(dim=1, keepdim=True)
        member = torch.zeros(values.shape[1], len(self.groups), dtype=values.dtype, device=values.device)
        for number, group in enumerate(self.groups):
            member[list(group), number] = 1.0
        return values @ member

    def masked(
        self,
        document: Document,
        target: Target,
        keep: Bool[np.ndarray, "mask token"],
        absence: Absence,
        at_once: int | None = None,
    ) -> Float[np.ndarray, "mask"]:
        """The target at every mask; the values of all groups are kept, so that no mask is evaluated for each."""
        half = torch.is_autocast_enabled(next(self.network.parameters()).device.type)
        known, keys = self.store.of(self.fingerprint, document, absence, half), mask_keys(keep)
        new = {key: number for number, key in enumerate(keys) if key not in known}
        if new:
            rows = self.masked_values(document, keep[list(new.values())], absence, at_once)
            known.update(zip(new, rows, strict=True))
        return target.of(np.stack([known[key] for key in keys]))

    def masked_values(
        self, document: Document, keep: Bool[np.ndarray, "mask token"], absence: Absence, at_once: int | None = None
    ) -> Float[np.ndarray, "mask class"]:
        """The values of every group at every mask."""
        n = self.masks_at_once(document, None) if at_once is None else at_once
        if absence == "delete" and not keep[:, self._places(document)].all():
            raise Unsupported("Earlier output is a source, and it cannot be deleted; use another absence.")
        if absence == "cut":
            own = self._cut_values(document, keep, n)
        else:
            plain = Continuation(self.base, self.classes, self.groups, self.measure, written=self._written)
            own = read_masked(plain, document, keep, absence, n, lambda values: values.double().cpu().numpy())
        if self.foil is None:
            return own
        return own - self.foil.model.masked_values(self.foil.document, self.foil.keep(keep), absence, n)

    @torch.no_grad()
    def _cut_values(
        self, document: Document, keep: Bool[np.ndarray, "mask token"], at_once: int
    ) -> Float[np.ndarray, "mask class"]:
        n_last, rows = self.n_written(document), []
        ids = torch.from_numpy(self._target_ids(document))[None]
        with still(self.network):
            logits_of = self.base.cut(self._unread(document), n_last)
            for start in range(0, len(keep), at_once):
                logits = logits_of(keep[start : start + at_once, :-1])
                values = quantities(self.measure, logits, ids.to(logits.device).expand(len(logits), -1))
                rows.append(self._grouped(values).double().cpu().numpy())
        return np.concatenate(rows)

    def slopes(
        self, index: int, embeddings: Float[Tensor, "row token d_e"], document: Document
    ) -> tuple[Float[Tensor, "row"], Float[Tensor, "row token d_e"]]:
        """One group's value at some embeddings, and its gradient there, from passes that all groups share."""
        return every_slope(self, self.store.slopes, index, embeddings, document)

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener gets every attention call."""
        return self.base.listening(listener)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The positions that predict the tokens of the group in focus, each with the same share."""
        lengths = [len(row.ids) - self.base.n_sources([row]) for row in map(self._unread, documents)]
        rows = torch.zeros(len(documents), max(lengths), dtype=torch.float64)
        for row, length, document in zip(rows, lengths, documents, strict=True):
            n = self.n_written(document)
            group = range(n) if self.groups is None else self.groups[self.focus]
            row[[length - n + position for position in group]] = 1 / len(group)
        return rows.to(self.base.readout(documents[:1]).device)

    def placed(
        self, documents: Sequence[Document], own: Float[Tensor, "batch _"], source: Float[Tensor, "batch _"] | None
    ) -> Float[Tensor, "batch token"]:
        """Values in the order of the tokens; the last token of the output is not read."""
        return torch.nn.functional.pad(self.base.placed([*map(self._unread, documents)], own, source), (0, 1))

    def n_sources(self, documents: Sequence[Document]) -> int:
        """The number of positions of the source; 0 if there is none."""
        return self.base.n_sources(documents)

    def bytes_a_document(self, n_tokens: int) -> int:
        """The language model's estimate."""
        return self.base.bytes_a_document(n_tokens)

    def masks_at_once(self, document: Document, memory: int | None) -> int:
        """As of every model, with room for the logits of the whole output."""
        few = PASS_MEMORY if memory is None else memory
        logits = 12 * self.n_written(document) * len(self.base.classes)
        return max(1, min(self.base.masks_at_once(document, memory), few // logits))
