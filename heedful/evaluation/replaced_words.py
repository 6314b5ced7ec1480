"""Texts of which a share of the words is replaced: the strongest words that a method names, or the weakest."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pickle import PicklingError
from typing import Literal, final, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from heedful.datasets.texts import texts_of
from heedful.document import Document
from heedful.errors import BadInput
from heedful.explainers import Explainer
from heedful.explainers.many_texts import ManyTexts
from heedful.explanation import Explanation
from heedful.models import Model
from heedful.perturb.masks import generator

Mode = Literal["remove", "keep"]
"""Which words are replaced: the strongest ("remove"), or the weakest, so that the strongest stay ("keep")."""
MODES: tuple[Mode, ...] = get_args(Mode)
Ranks = Int[np.ndarray, "word"]
"""The place of every word within its text, 0 the strongest; the words of all texts, one after another."""
Ranked = tuple[list[Int[np.ndarray, "_"]], int]
"""The places of the words of some texts, and how many of them the method could not explain."""
_CHUNK = 512


@final
@dataclass(frozen=True, eq=False)
class WordTexts:
    """Labelled texts of one split and the characters of their words, as the explained model reads them."""

    texts: tuple[str, ...]
    labels: Int[np.ndarray, "text"]
    spans: Int[np.ndarray, "word 2"]
    """Start and end of the words of all texts, one after another."""
    lengths: Int[np.ndarray, "text"]
    """The number of words of each text."""

    def replaced(self, ranks: Ranks, mode: Mode, share: float) -> "ReplacedTexts":
        """The texts with a share of the words of each replaced: share · n of n words, rounded, halves up."""
        # A share such as 0.29 is not exact: 0.29 · 50 must be 14.5.
        n_gone = np.floor(np.round(share * self.lengths, 9) + 0.5).astype(np.int64)
        least = np.repeat(n_gone if mode == "remove" else self.lengths - n_gone, self.lengths)
        return ReplacedTexts(self, ranks < least if mode == "remove" else ranks >= least)

    def all_or_none(self, replaced: bool) -> "ReplacedTexts":
        """The texts with every word replaced, or none."""
        return ReplacedTexts(self, np.full(len(self.spans), replaced))


@final
@dataclass(frozen=True, eq=False)
class ReplacedTexts:
    """Texts, and for each of their words whether it is replaced."""

    source: WordTexts
    gone: Bool[np.ndarray, "word"]

    def texts(self, replacement: str) -> list[str]:
        """The texts with that word in every replaced place; with "" the words are deleted.

        Where words are deleted, one space stands between all that stays, even if nothing was deleted: the white space
        does not tell where a word was. What follows the last word that the explained model read is cut off: nobody has
        ranked it.
        """
        words = iter(zip(self.source.spans.tolist(), self.gone.tolist(), strict=True))
        texts = []
        for text, n_words in zip(self.source.texts, self.source.lengths.tolist(), strict=True):
            parts, last = [], 0
            for _ in range(n_words):
                (start, end), gone = next(words)
                parts += [text[last:start], replacement if gone else text[start:end]]
                last = end
            texts.append("".join(parts) if replacement else " ".join(" ".join(parts).split()))
        return texts


def read_spans(model: Model, texts: Sequence[str]) -> tuple[Int[np.ndarray, "word 2"], Int[np.ndarray, "text"]]:
    """Start and end of the words of all texts, as the model reads them, and the number of words of each."""
    spans = [np.array(model.encode(text).word_spans, dtype=np.int64).reshape(-1, 2) for text in texts]
    return np.concatenate(spans), np.array([len(own) for own in spans])


def ranks_of(scores: Float[np.ndarray, "_"], document: Document) -> Int[np.ndarray, "_"]:
    """Places by falling |score|; lots of the text decide between equal scores, so that no position is favoured."""
    ranks, lots = np.empty(len(scores), dtype=np.int64), generator(0, document).random(len(scores))
    ranks[np.lexsort((lots, -np.abs(scores)))] = np.arange(len(scores))
    return ranks


def rank_words(
    model: Model,
    explainer: Explainer,
    texts: Sequence[str],
    n_workers: int = 1,
    watch: Callable[[float], None] = lambda _: None,
) -> tuple[Ranks, int]:
    """The ranks of all words, from processes or within this one, and how many texts were refused: lots rank theirs.

    Of two classes the second is explained against the first: its scores change their sign and not their size with the
    class, so that the ranking does not tell which class was predicted. Of more, it is the predicted class.
    """
    chunks = [texts[start : start + _CHUNK] for start in range(0, len(texts), _CHUNK)]
    ranks, n_refused, n_threads = list[Int[np.ndarray, "_"]](), 0, torch.get_num_threads()
    many = n_workers > 1
    # One thread each, within this process too: more may round otherwise.
    spawned = partial(ProcessPoolExecutor, n_workers, get_context("spawn"), _start, (model,))
    pool = spawned() if many else nullcontext(_start(model))
    try:
        with pool as over:
            for own, refused in (over.map if over else map)(partial(_rank_chunk, explainer), chunks):
                ranks += own
                n_refused += refused
                watch(len(ranks) / len(texts))
    except (PicklingError, AttributeError, TypeError) as error:
        if not many:
            raise
        raise BadInput(f"This model cannot be sent to other processes ({error}); leave `workers` at 1.") from error
    finally:
        torch.set_num_threads(n_threads)
        _MODELS.clear()
    return np.concatenate(ranks), n_refused


_MODELS: list[Model] = []
"""The model that is explained; in a process of its own the only one."""


def _rank_chunk(explainer: Explainer, texts: Sequence[str]) -> Ranked:
    model = _MODELS[-1]
    target, against = (1, 0) if len(model.classes) == 2 else (None, None)
    many = ManyTexts(model, explainer, texts_of(list(texts)), target, against)
    ranks, n_refused = list[Int[np.ndarray, "_"]](), 0
    for text, item in zip(texts, many.collect([*many.explain(range(len(texts)), first=False)]), strict=True):
        if isinstance(item, Explanation):
            ranks.append(ranks_of(item.scores, item.document))
        else:
            document = model.encode(text)
            ranks.append(ranks_of(np.zeros(len(document.word_spans)), document))
            n_refused += len(ranks[-1]) > 0
    return ranks, n_refused


def _start(model: Model) -> None:
    torch.set_num_threads(1)
    _MODELS.append(model)
