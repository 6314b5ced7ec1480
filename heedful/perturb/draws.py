"""The target at masks whose removed words are replaced by drawn ones: from data, or by a masked language model."""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from heedful.document import SPECIAL, Absence, Document, Pair
from heedful.document.draws import WordDraws, draws_of
from heedful.errors import MissingPackage, Unsupported
from heedful.models import Model
from heedful.models.question import Question
from heedful.perturb.drawn_words import drawn_words
from heedful.perturb.masks import generator


def values_at(
    question: Question, index: int, keep: Bool[np.ndarray, "mask token"], absence: Absence, at_once: int | None = None
) -> Float[np.ndarray, "mask"]:
    """The target of one document at masks over its tokens; where words are drawn, the mean over the draws."""
    draws = draws_of(absence)
    if draws is None:
        return question.masked(index, keep, absence, at_once)
    model, document = question.model, question.documents[index]
    redrawn = question.once(("redrawn", document, absence), lambda: Redrawn(model, document, draws))
    n, copies = at_once or model.masks_at_once(document, None), redrawn.texts(keep)
    rows = [model.predict(some) for some in iter(lambda: list(islice(copies, n)), [])]
    return question.targets[index].of(np.concatenate(rows)).reshape(len(keep), draws.n).mean(axis=1)


@final
class Redrawn:
    """Copies of a text in which words are drawn anew; whole words, since a drawn word may have other tokens.

    "marginal": `n` lists of words are drawn for the whole text, each position for itself, and every mask takes its
    words from the same lists; so values at masks are one function of the mask, and Shapley values sum to
    f(x) − mean f(the lists). "conditional": for each mask a masked language model reads the words that are kept, and
    each removed position is drawn `n` times from its distribution there, independently of the other removed positions.

    Covert, Lundberg & Lee, 2021 (arXiv:2011.14878), Section 4; Kim et al., 2020 (arXiv:2010.13984) for one word.
    Differs from the sources: several removed words are not drawn from their joint distribution.
    """

    def __init__(self, model: Model, document: Document, draws: WordDraws) -> None:
        text, self.document, self.draws = document.text, document, draws
        if document.picture is not None:
            raise Unsupported("Words are drawn for texts only; for an image give another absence.")
        # A tokenizer may count the space before a word as a part of it.
        self._spans = [_without_spaces(text, *span) for span in document.word_spans]
        cut = document.truncated
        self._ends = [(0, document.spans[-1][1] if cut else len(text))]
        if document.segments is not None:
            start = document.spans[int(np.argmax(document.segments == 1))][0]
            # A pair is joined by one line break.
            self._ends = [(0, start - 1), (start, len(text))] if text[start - 1 : start] == "\n" else []
        own = [text[start:end] for start, end in self._spans]
        if not self._ends or not np.array_equal(model.encode(self._copy(own)).ids, document.ids):
            raise Unsupported(
                "This model reads more than the text, so its words cannot be drawn; give another absence."
            )
        if draws.kind == "marginal":
            seed = int(generator(draws.seed, document).integers(2**31))
            words = drawn_words(draws.source, draws.n * len(own), seed)
            self._lists = [words[start :: draws.n] for start in range(draws.n)]

    def texts(self, keep: Bool[np.ndarray, "mask token"]) -> Iterator[str | Pair]:
        """For each mask over tokens the copies of the text, as many as there are draws."""
        words, own = self.document.words, [self.document.text[start:end] for start, end in self._spans]
        for row in keep:
            kept = np.ones(len(own), dtype=bool)
            kept[words[~row & (words != SPECIAL)]] = False
            if (row & (words != SPECIAL) & ~kept[words]).any():
                raise Unsupported("Words are drawn whole, and this mask keeps a part of one; choose the unit word.")
            for drawn in self._lists if self.draws.kind == "marginal" else self._filled(kept, own):
                yield self._copy([a if k else b for k, a, b in zip(kept, own, drawn, strict=True)])

    def _filled(self, kept: Bool[np.ndarray, "word"], own: list[str]) -> list[list[str]]:
        """Lists of words drawn by the masked language model, which reads the kept ones."""
        try:
            from heedful.models.hf.fill import filler_of
        except ImportError as error:
            raise MissingPackage("Conditional draws need the extra [hf]; run `make install`.") from error
        filler, gone = filler_of(self.draws.source), np.flatnonzero(~kept)
        content = f"{self.draws.seed} {self.document.text} {gone.tolist()}".encode("utf-8", "surrogatepass")
        rng = np.random.default_rng(np.frombuffer(hashlib.sha256(content).digest(), dtype=np.uint32))
        masked = self._copy([word if k else filler.model.mask for k, word in zip(kept, own, strict=True)])
        drawn = filler.draw(masked, len(gone), self.draws.n, rng)
        lists = [list(own) for _ in range(self.draws.n)]
        for words, row in zip(lists, drawn, strict=True):
            for place, word in zip(gone.tolist(), row, strict=True):
                words[place] = word
        return lists

    def _copy(self, words: Sequence[str]) -> str | Pair:
        """The text or pair with these words in the places of its own."""
        parts = [self._part(words, *ends) for ends in self._ends]
        return Pair(*parts) if len(parts) == 2 else parts[0]

    def _part(self, words: Sequence[str], low: int, high: int) -> str:
        parts = []
        for (start, end), word in zip(self._spans, words, strict=True):
            if low <= start < high:
                parts += [self.document.text[low:start], word]
                low = end
        return "".join([*parts, self.document.text[low:high]])


def _without_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    word = text[start:end]
    return end - len(word.lstrip()), start + len(word.rstrip())
