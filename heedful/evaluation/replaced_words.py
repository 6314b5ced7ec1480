"""Texts of which a share of the words is replaced: the strongest words that a method names, or the weakest."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pickle import PicklingError
from typing import Any, Literal, final, get_args

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
Spans = Int[np.ndarray, "_ 2"]
Ranks = Int[np.ndarray, "_"]
"""The place of each word of a text, 0 the strongest."""
_CHUNK = 512


@final
@dataclass(frozen=True, eq=False)
class WordTexts:
    """Labelled texts of one split and the characters of their words, as the explained model reads them."""

    texts: tuple[str, ...]
    labels: Int[np.ndarray, "text"]
    spans: tuple[Spans, ...]

    def replaced(self, ranks: Sequence[Ranks], mode: Mode, share: float) -> "ReplacedTexts":
        """The texts with a share of the words replaced; `ranks` has an entry for each text."""
        return ReplacedTexts(self, tuple(replaced_words(own, mode, share) for own in ranks))

    def all_or_none(self, replaced: bool) -> "ReplacedTexts":
        """The texts with every word replaced, or none."""
        return ReplacedTexts(self, tuple(np.full(len(own), replaced) for own in self.spans))


@final
@dataclass(frozen=True, eq=False)
class ReplacedTexts:
    """Texts, and for each of their words whether it is replaced."""

    source: WordTexts
    gone: tuple[Bool[np.ndarray, "_"], ...]

    def texts(self, replacement: str) -> list[str]:
        """The texts with that word in every replaced place; with "" the words are deleted.

        What follows the last word that the explained model read is cut off: nobody has ranked it.
        """
        return [
            _text(text, spans.tolist(), gone.tolist(), replacement)
            for text, spans, gone in zip(self.source.texts, self.source.spans, self.gone, strict=True)
        ]


def _text(text: str, spans: list[list[int]], gone: list[bool], replacement: str) -> str:
    parts, last = [], 0
    for (start, end), without in zip(spans, gone, strict=True):
        parts += [text[last:start], replacement if without else text[start:end]]
        last = end
    return "".join(parts)


def replaced_words(ranks: Ranks, mode: Mode, share: float) -> Bool[np.ndarray, "_"]:
    """Which words of a text are replaced: share · n of n words, rounded, halves up."""
    # A share such as 0.29 is not exact; 0.29 · 50 is 14.5.
    n_gone = int(np.floor(round(share * len(ranks), 9) + 0.5))
    return ranks < n_gone if mode == "remove" else ranks >= len(ranks) - n_gone


def word_spans(model: Model, texts: Sequence[str]) -> tuple[Spans, ...]:
    """The characters of the words of each text, as the model reads them; none of a text that it cannot read."""
    return tuple(np.array(model.encode(text).word_spans, dtype=np.int64).reshape(-1, 2) for text in texts)


def ranks_of(scores: Float[np.ndarray, "_"], document: Document) -> Ranks:
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
) -> tuple[list[Ranks], int]:
    """The ranks of the words of every text, and how many texts the method could not explain: lots rank their words.

    Of two classes the second is explained against the first: its scores change their sign and not their size with the
    class, so that the ranking does not tell which class was predicted. Of more, it is the predicted class.
    """
    chunks = [tuple(texts[start : start + _CHUNK]) for start in range(0, len(texts), _CHUNK)]
    ranks: list[Ranks] = []
    n_refused = 0
    with _mapping(n_workers) as over:
        for own, refused in over(_rank_chunk, [model] * len(chunks), [explainer] * len(chunks), chunks):
            ranks += own
            n_refused += refused
            watch(len(ranks) / len(texts))
    return ranks, n_refused


def _rank_chunk(model: Model, explainer: Explainer, texts: Sequence[str]) -> tuple[list[Ranks], int]:
    target, against = (1, 0) if len(model.classes) == 2 else (None, None)
    many = ManyTexts(model, explainer, texts_of(list(texts)), target, against)
    ranks: list[Ranks] = []
    n_refused = 0
    for text, item in zip(texts, many.collect([*many.explain(range(len(texts)), first=False)]), strict=True):
        if isinstance(item, Explanation):
            ranks.append(ranks_of(item.scores, item.document))
        else:
            document = model.encode(text)
            n_words = document.n_units("word")
            ranks.append(ranks_of(np.zeros(n_words), document))
            n_refused += n_words > 0
    return ranks, n_refused


@contextmanager
def _mapping(n_workers: int) -> Iterator[Any]:
    """A `map` over processes, or within this one; always on one thread each, since more may round otherwise."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if n_workers == 1:
            yield map
        else:
            with ProcessPoolExecutor(n_workers, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
                yield pool.map
    except (PicklingError, AttributeError, TypeError) as error:
        if n_workers == 1:
            raise
        raise BadInput(f"This model cannot be sent to other processes ({error}); leave `workers` at 1.") from error
    finally:
        torch.set_num_threads(n_threads)
