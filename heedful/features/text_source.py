"""A source of activations of texts, chunk by chunk; the model reads every text once per pass."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.document import Document
from heedful.errors import BadInput
from heedful.family import check_count, check_seed
from heedful.features.activations import EMPTY, find_site, is_read, text_rows
from heedful.features.added_part import check_added
from heedful.features.source import Source, stretches
from heedful.models import Model
from heedful.models.language import first_tokens
from heedful.models.language.activations import record_activations
from heedful.models.layered import LayeredModel
from heedful.models.training_loop import shuffled


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
            raise BadInput(EMPTY)
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
            self.n_truncated += document.truncated
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
