"""Hugging Face models in which words and regions of an image attend to each other: LXMERT."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from itertools import cycle
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedful.document import Document
from heedful.document.alignment.align import join_texts
from heedful.document.detected import Regions
from heedful.errors import BadInput, Unsupported
from heedful.models.attention_hook import Kind, Listener
from heedful.models.fingerprint import check_weights, fingerprint_of
from heedful.models.forward_patch import patched_forward
from heedful.models.hf.hook import hooked_attention, listening
from heedful.models.hf.pretrained import HfModel
from heedful.models.hf.text import embedded, filler, look_up, read_text, replacement_token, room, token_of
from heedful.models.layered import padded, stacked
from heedful.models.readout import READ_FROM, readout_rows
from heedful.models.twins.coordinates import word_table

_REGION = -1
"""The token id of a region."""


@final
class HfCoAttention(HfModel):
    """A model of a text and regions of an image, `heedful.Regions`; its outputs are read from the text's first token.

    The regions follow the words: e holds their features, with zeros up to the wider of both. Boxes are never removed.
    A model without a head for answers has the coordinates of its pooled vector as outputs.
    """

    reads = READ_FROM["first"]
    co_attends = True

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        check_weights(network)
        self.network = network
        self.tokenizer = tokenizer
        self.replacement_id = replacement_token(tokenizer)
        self.room = room(network, tokenizer)
        config: Any = network.config
        self._answers = type(network).__name__.endswith("ForQuestionAnswering")
        n, names = config.num_qa_labels, config.id2label
        if not self._answers:
            self.classes, self.returns = tuple(f"coordinate {n}" for n in range(config.hidden_size)), "scores"
        elif len(names) == n:
            self.classes = tuple(str(names[number]) for number in range(n))
        else:
            self.classes = tuple(f"answer {number}" for number in range(n))

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the names of the classes."""
        return fingerprint_of(self.network, self.classes)

    def encode(self, text: object) -> Document:
        """The words and regions as this model reads them."""
        if not isinstance(text, Regions):
            raise BadInput("This model reads a text and regions: give heedful.Regions(text, features, boxes).")
        config: Any = self.network.config
        n, widths = len(text.names), (config.visual_feat_dim, config.visual_pos_dim)
        if (text.features.shape[1], text.boxes.shape[1]) != widths:
            raise BadInput(f"This model reads {widths[0]} features and {widths[1]} numbers of a box for each region.")
        read = read_text(self.tokenizer, text.text, self.room)
        ends = len(read.text) + np.cumsum([1 + len(name) for name in text.names])
        own = np.concatenate([text.features, text.boxes], axis=1)
        return replace(
            read,
            text=join_texts((read.text, " ".join(text.names))),
            ids=np.append(read.ids, np.full(n, _REGION)),
            pieces=(*read.pieces, *text.names),
            spans=(*read.spans, *((int(b) - len(name), int(b)) for name, b in zip(text.names, ends, strict=True))),
            words=np.append(read.words, 1 + read.words.max(initial=-1) + np.arange(n)),
            known=np.append(read.known, np.ones(n, dtype=bool)),
            segments=np.repeat([0, 1], [len(read.ids), n]),
            attached=np.concatenate([np.zeros((len(read.ids), own.shape[1])), own]),
        )

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors of the words, and the features of the regions; those of a region that was replaced are zeros."""
        table, n = word_table(self.network), self.network.config.visual_feat_dim
        ids, _ = padded([np.maximum(document.ids, 0) for document in documents], filler(self.tokenizer))
        words = look_up(table, ids.to(self.network.device))
        width = max(n, words.shape[2])
        e = words.new_zeros(*words.shape[:2], width)
        e[..., : words.shape[2]] = words
        for row, document in zip(e, documents, strict=True):
            assert document.attached is not None
            regions = np.flatnonzero(_is_region(document))
            features = document.attached[regions, :n] * (document.ids[regions, None] == _REGION)
            row[regions] = 0.0
            row[regions, :n] = torch.from_numpy(features).to(row)
        return e

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The outputs for those vectors."""
        config, table, sides = self.network.config, word_table(self.network), []
        for second in (False, True):
            places = [np.flatnonzero(_is_region(document) == second) for document in documents]
            index, is_token = (x.to(embeddings.device) for x in padded(places, 0))
            seen = is_token if hidden is None else is_token & ~hidden.gather(1, index)
            e = embeddings.gather(1, index[..., None].expand(-1, -1, embeddings.shape[2]))
            sides.append((places, seen, e))
        (words, words_seen, e_words), (regions, regions_seen, e_regions) = sides
        if not regions_seen.any(dim=1).all():
            raise Unsupported("A masked copy has no region left, which this model needs; use the absence 'replace'.")
        ids = [document.ids[own] for document, own in zip(documents, words, strict=True)]
        ids = padded(ids, filler(self.tokenizer))[0].to(embeddings.device)
        n = config.visual_feat_dim
        boxes = [document.attached[own, n:] for document, own in zip(documents, regions, strict=True)]  # type: ignore[index]
        with embedded(table, [(ids, e_words[..., : int(table.embedding_dim)])]):
            output = self.network(
                input_ids=ids,
                attention_mask=words_seen.long(),
                visual_feats=e_regions[..., :n],
                visual_pos=stacked(boxes).to(e_regions),
                visual_attention_mask=regions_seen.long(),
            )
        return output.question_answering_score if self._answers else output.pooled_output

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Inside this context the listener gets every attention call of both streams, and of each to the other."""
        kinds = {module: kind for name, module in self.network.named_modules() if (kind := _kinds_of(name, module))}
        hooked = patched_forward(kinds, lambda module: partial(_attend, module, cycle(kinds[module])))
        with hooked, listening(self.network, listener):
            yield

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The first token of the text."""
        return readout_rows("first", [int((~_is_region(d)).sum()) for d in documents]).to(self.network.device)

    def placed(
        self, documents: Sequence[Document], own: Float[Tensor, "batch _"], source: Float[Tensor, "batch _"] | None
    ) -> Float[Tensor, "batch token"]:
        """Numbers of words and regions in the order of the document's tokens."""
        rows = own.new_zeros(len(documents), max(len(d.ids) for d in documents))
        for number, (row, document) in enumerate(zip(rows, documents, strict=True)):
            regions = torch.from_numpy(_is_region(document))
            n = len(regions)
            row[:n][~regions] = own[number, : int((~regions).sum())]
            if source is not None:
                row[:n][regions] = source[number, : int(regions.sum())].to(row)
        return rows

    def n_sources(self, documents: Sequence[Document]) -> int:
        """The number of regions."""
        return max(int(_is_region(document).sum()) for document in documents)

    def word_id(self, word: str) -> int:
        """The one token that a word is inside a text; in the place of a region it has no features."""
        return token_of(self.tokenizer, word)

    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:
        """Zeros, or the mean of the table of word vectors, and of the regions' features."""
        e, table = self.embed([document])[0], word_table(self.network)
        if kind != "mean":
            return torch.zeros_like(e)
        regions = torch.from_numpy(_is_region(document)).to(e.device)
        mean = torch.where(regions[:, None], e[regions].mean(dim=0), 0)
        mean[~regions, : int(table.embedding_dim)] = table.weight.mean(dim=0)
        return mean


def _is_region(document: Document) -> Bool[np.ndarray, "token"]:
    return document.segments == 1  # type: ignore[return-value]


def _kinds_of(name: str, module: nn.Module) -> tuple[Kind, ...]:
    """What an attention module is, call by call: a cross-attention module is used in both directions."""
    if not type(module).__name__.endswith("LxmertAttention"):
        return ()
    if ".visual_attention." in name:
        return "cross", "back"
    return ("source",) if ".r_layers." in name or ".visn_self_att." in name else ("self",)


def _attend(module: Any, kinds: Iterator[Kind], states: Tensor, context: Tensor, mask: Any = None, **_: Any) -> Any:
    """LXMERT's attention through the hook of transformers' other models."""
    heads: Callable[[Tensor], Tensor] = lambda x: x.unflatten(2, (module.num_attention_heads, -1)).transpose(1, 2)  # noqa: E731
    q, k, v = (heads(x) for x in (module.query(states), module.key(context), module.value(context)))
    return (hooked_attention(module, q, k, v, mask, is_causal=False, kind=next(kinds))[0].flatten(2),)
