"""GPT-2 with its vocabulary: a language model that every explainer reads and that writes text, such as "writer"."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.document import Document, check_text
from heedful.document.alignment.align import align
from heedful.document.note import Note
from heedful.errors import BadInput
from heedful.models.attention_hook import Listener, heard
from heedful.models.fingerprint import check_weights, fingerprint_of
from heedful.models.hf.next_token import Surfaces, TokenNames, text_before
from heedful.models.language import CutLogits, LanguageModel, Prefix
from heedful.models.language.appended import append_output, tokens_behind
from heedful.models.language.bpe import BytePairs
from heedful.models.language.gpt2 import Gpt2Network, KeyValueCache, up_to_own
from heedful.models.language.shared_prefix import shared_length
from heedful.models.language.tokenizer import ByteTokenizer
from heedful.models.layered import padded
from heedful.models.readout import READ_FROM, readout_rows
from heedful.models.recording import OneTower

_HALF = re.compile("[\ud800-\udfff]")


@final
class Writer(LanguageModel, OneTower):
    """GPT-2 with a vocabulary of byte pairs; its logits are those of the token that comes next after the text.

    With `starts` a text begins behind the token that ends texts, as in the training of the bundled model; GPT-2 itself
    reads the text alone.
    """

    reads = READ_FROM["last"]
    outputs = "next tokens"

    def __init__(self, network: Gpt2Network, vocabulary: BytePairs, starts: bool) -> None:
        check_weights(network)
        self.network = network
        self.vocabulary = vocabulary
        self.starts = starts
        self.family = f"GPT-2 of {network.config.depth} layers × {network.config.n_heads} heads"
        self.replacement_id = vocabulary.special[0]
        self.end_ids = frozenset(vocabulary.special[:1])
        self.room = network.config.T_max

    @cached_property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The characters that every token adds to a text."""
        return tuple(token.decode("utf-8", "replace") for token in self.vocabulary.tokens)

    @cached_property
    def fingerprint(self) -> str:  # type: ignore[override]
        """A hash of the weights and of the vocabulary."""
        about = (repr(self.vocabulary.tokens), repr(self.vocabulary.merges), repr(self.starts))
        return fingerprint_of(self.network, (*about, repr(self.network.config)))

    @cached_property
    def _tokenizer(self) -> ByteTokenizer:
        return ByteTokenizer(self.vocabulary)

    @cached_property
    def _surfaces(self) -> Surfaces:
        return Surfaces(self._tokenizer, self.classes)

    def target_names(self, document: Document | None) -> TokenNames:
        """The names of the tokens after the document."""
        return TokenNames(self._surfaces, None if document is None else text_before(document))

    def encode(self, text: object) -> Document:
        """The text as this model reads it; one that is too long is truncated, with a note."""
        text, notes = check_text(text), []
        if n_halves := len(_HALF.findall(text)):
            text = _HALF.sub("�", text)
            changed = f"Lone surrogates (halves of characters) in the text were replaced by �: {n_halves}."
            notes.append(Note(changed, "changed-text"))
        tokens = self.vocabulary.spans(text)
        n_read = min(len(tokens), self.network.config.T_max - self.starts)
        if n_read < len(tokens):
            cut = f"Only {n_read:,} of {len(tokens):,} tokens were read; the text is longer than the model's limit."
            notes.append(Note(cut, "truncated"))
        first = [(self.vocabulary.special[0], 0, 0)] * self.starts
        ids, starts, ends = (
            (list(column) for column in zip(*(first + tokens[:n_read]), strict=True))
            if (first or n_read)
            else ([], [], [])
        )
        special = [True] * len(first) + [False] * n_read
        alignment = align(self._tokenizer, ids, (text,), special, list(zip(starts, ends, strict=True)), None)
        return Document(
            text=text,
            ids=np.array(ids, dtype=np.int64),
            pieces=alignment.pieces,
            spans=alignment.spans,
            words=alignment.words,
            known=np.ones(len(ids), dtype=bool),
            notes=tuple(notes),
        )

    def embed(self, documents: Sequence[Document]) -> Float[Tensor, "batch token d_e"]:
        """The vectors that enter the network, without their positions."""
        return self.network.embed(self._padded(documents)[0])

    def _padded(self, documents: Sequence[Document]) -> tuple[Int[Tensor, "batch token"], Bool[Tensor, "batch token"]]:
        ids, is_token = padded([document.ids for document in documents], 0)
        return ids.to(self.network.W_e.device), is_token.to(self.network.W_e.device)

    def forward(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The logits of the next token from those vectors."""
        return self.token_logits(embeddings, documents, hidden)[:, 0]

    def token_logits(
        self,
        embeddings: Float[Tensor, "batch token d_e"],
        documents: Sequence[Document],
        hidden: Bool[Tensor, "batch token"] | None = None,
        n_last: int = 1,
    ) -> Float[Tensor, "batch query vocabulary"]:
        """The logits after each of the last tokens of every document, from those vectors."""
        # Padding stands behind every token, so no token attends to it.
        ids, is_token = self._padded(documents)
        lengths, seen, cache = is_token.sum(dim=1), None, None
        n_shared = shared_length(
            self.network, embeddings, None if hidden is None else ~hidden, int(lengths.min()) - n_last
        )
        if n_shared:
            cache = KeyValueCache()
            self.network.tokens(ids[:1, :n_shared])
            self.network.states(embeddings[:1, :n_shared], None, cache)
            cache = cache.select(torch.zeros(len(embeddings), dtype=torch.long, device=embeddings.device))
        rest = embeddings[:, n_shared:]
        if hidden is not None:
            seen = up_to_own(rest.shape[1], n_shared, rest.device) & ~hidden[:, None]
        self.network.tokens(ids[:, n_shared:])
        states = self.network.states(rest, seen, cache)
        places = (lengths - n_last - n_shared)[:, None] + torch.arange(n_last, device=lengths.device)
        return self.network.logits(states[torch.arange(len(states), device=states.device)[:, None], places])

    def read(self, document: Document) -> Prefix:
        """Reads a document, as a prefix of one row."""
        return self._read(torch.from_numpy(document.ids)[None].to(self.network.W_e.device), KeyValueCache())

    def _read(self, ids: Int[Tensor, "row token"], cache: KeyValueCache) -> Prefix:
        self.network.tokens(ids)
        states = self.network.states(self.network.embed(ids), None, cache)
        return Prefix(cache, self.network.logits(states[:, -1]), cache.n_read)

    def go_on(self, prefix: Prefix, ids: Int[Tensor, "row"]) -> Prefix:
        """Reads one more token in every row."""
        return self._read(ids[:, None], prefix.cache)

    def select(self, prefix: Prefix, rows: Int[Tensor, "_"]) -> Prefix:
        """Some rows of a prefix."""
        return Prefix(prefix.cache.select(rows), prefix.logits[rows], prefix.n_read)

    def cut(self, document: Document, n_last: int) -> CutLogits:
        """A function of masks: the last logits, if only these positions do not attend to the tokens masked out."""
        device = self.network.W_e.device
        ids = torch.from_numpy(document.ids)[None].to(device)
        n_before, before = ids.shape[1] - n_last, KeyValueCache()
        if n_before:
            self.network.tokens(ids[:, :n_before])
            self.network.states(self.network.embed(ids[:, :n_before]), None, before)
        causal, here = up_to_own(n_last, n_before, device), torch.arange(n_last, device=device)

        def logits(keep: Bool[np.ndarray, "mask token"]) -> Float[Tensor, "mask query vocabulary"]:
            rows = torch.zeros(len(keep), dtype=torch.long, device=device)
            seen = causal & torch.from_numpy(keep).to(device)[:, None]
            seen[:, here, n_before + here] = True
            self.network.tokens(ids[:, n_before:])
            e = self.network.embed(ids[:, n_before:])[rows]
            return self.network.logits(self.network.states(e, seen, before.select(rows)))

        return logits

    def spell(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        return self.vocabulary.decode(int(number) for number in ids).decode("utf-8", "replace")

    @property
    def head(self) -> nn.Module:
        """The layer that turns the states of the last layer into logits."""
        return self.network.head

    def typed(self, document: Document, text: str) -> list[int]:
        """The tokens of a text that stands behind a document."""
        return tokens_behind(text_before(document), text, self.vocabulary.encode)

    def continued(self, document: Document, ids: Sequence[int]) -> Document:
        """A document with tokens that the model wrote or could have written behind it, in segment 1."""
        ids, before = [int(number) for number in ids], document.ids.tolist()
        added = self.spell([*before, *ids]).removeprefix(self.spell(before))
        special = [number in self.vocabulary.special for number in ids]
        return append_output(document, ids, added, align(self._tokenizer, ids, (added,), special, None, None))

    def listening(self, listener: Listener) -> AbstractContextManager[None]:
        """Inside this context the listener receives every attention call."""
        return heard(self.network, listener)

    def readout(self, documents: Sequence[Document]) -> Float[Tensor, "batch query"]:
        """The share of each position of the last layer in the logits."""
        return readout_rows("last", [len(d.ids) for d in documents]).to(self.network.W_e.device)

    def bytes_a_document(self, n_tokens: int) -> int:
        """An estimate of the memory of a pass with its gradient."""
        config = self.network.config
        cells = config.n_heads * n_tokens + 14 * config.d_e + 3 * config.d_hidden
        return self.network.W_e.element_size() * n_tokens * config.depth * cells

    def word_id(self, word: str) -> int:
        """The one token that a word is inside a text."""
        for ids in (self.vocabulary.encode(f" {word}"), self.vocabulary.encode(word)):
            if len(ids) == 1:
                return ids[0]
        raise BadInput(f"{word!r} is not one token of this model, so it cannot replace words; give another word.")

    def gone_vector(self, document: Document, kind: str) -> Float[Tensor, "*token d_e"]:  # noqa: ARG002
        """Zeros, or the mean of the table of word vectors."""
        W_e = self.network.W_e
        return W_e.mean(dim=0) if kind == "mean" else torch.zeros_like(W_e[0])

    def filled(
        self, documents: Sequence[Document], vector: Float[Tensor, "*token d_e"]
    ) -> Float[Tensor, "batch token d_e"]:
        """The vector at every token."""
        return vector.expand_as(self.embed(documents))
