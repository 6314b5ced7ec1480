"""Continuations of many prompts, written side by side: one pass reads the next token of every row."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from heedful.document import Document
from heedful.generation.generate import room_left
from heedful.generation.step import demanded_token, next_log_probabilities
from heedful.generation.strategies import Strategy, draw_token
from heedful.models.attention_hook import still
from heedful.models.language import LanguageModel, Prefix, first_tokens
from heedful.models.recording import OneTower
from heedful.perturb.masks import generator

Ids = tuple[int, ...]
"""The tokens that were written after a prompt, its end token among them."""


def continue_all(
    model: LanguageModel, documents: Sequence[Document], strategy: Strategy, max_new: int, seed: int
) -> list[Ids]:
    """What `generate` writes after each document, up to rounding: every prompt has its own random numbers.

    Prompts that begin with the same token share a batch, so no padding is needed: what they have in common is read
    once, then every row is fed its own prompt token by token, and writes as soon as its prompt ends.
    """
    written: dict[int, Ids] = {}
    with torch.no_grad(), still(model.network):
        for group in _groups(model, documents):
            rows = [_Row(model, documents[number], strategy, max_new, seed) for number in group]
            _write(model, rows)
            written |= {number: tuple(row.written) for number, row in zip(group, rows, strict=True)}
    return [written[number] for number in range(len(documents))]


class _Row:
    """One prompt of a batch and what was written after it."""

    def __init__(self, model: LanguageModel, document: Document, strategy: Strategy, max_new: int, seed: int) -> None:
        self.document, self.strategy, self.rng = document, strategy, generator(seed, document)
        self.prompt: list[int] = document.ids.tolist()
        self.limit = min(max_new, room_left(model, document))
        self.written: list[int] = []
        self.ended = False

    def write(self, model: LanguageModel, prefix: Prefix) -> None:
        """Draws the next token from a prefix of this row alone."""
        log_p = next_log_probabilities(prefix, len(self.written))[0]
        demanded = demanded_token(model, len(self.written), self.limit)
        law = self.strategy.law(log_p) if demanded is None else (np.arange(len(log_p)) == demanded).astype(np.float64)
        chosen = draw_token(law, self.rng)
        self.written.append(chosen)
        self.ended = chosen in model.end_ids or len(self.written) == self.limit


def _groups(model: LanguageModel, documents: Sequence[Document]) -> Iterator[list[int]]:
    """The numbers of documents that share a batch; those of an encoder-decoder are read one by one."""
    by_start: dict[int, list[int]] = {}
    for number, document in enumerate(documents):
        key = int(document.ids[0]) if isinstance(model, OneTower) else -1 - number
        by_start.setdefault(key, []).append(number)
    yield from by_start.values()


def _write(model: LanguageModel, rows: Sequence[_Row]) -> None:
    """Writes after every prompt of a batch, until all rows have ended."""
    prompts = [row.prompt for row in rows]
    shortest = min(map(len, prompts))
    n_read = next((n for n in range(shortest) if len({prompt[n] for prompt in prompts}) > 1), shortest)
    alone = len(rows) == 1
    prefix = model.read(rows[0].document if alone else first_tokens(rows[0].document, n_read))
    if not alone:
        prefix = model.select(prefix, torch.zeros(len(rows), dtype=torch.long, device=prefix.logits.device))
    for place in range(n_read, max(map(len, prompts)) + max(row.limit for row in rows)):
        for number, row in enumerate(rows):
            if place >= len(row.prompt) and not row.ended:
                row.write(model, Prefix(None, prefix.logits[number : number + 1], prefix.n_read))
        if all(row.ended for row in rows):
            return
        # A row that has ended is fed its last token, which no other row attends to.
        fed = [row.prompt[place] if place < len(row.prompt) else row.written[-1] for row in rows]
        prefix = model.go_on(prefix, torch.tensor(np.array(fed), device=prefix.logits.device))
