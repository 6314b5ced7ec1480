"""Change of an explanation when a word is replaced by a synonym or misspelt."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import ClassVar, final

import numpy as np

from heedful.document import SPECIAL, Document
from heedful.errors import BadInput, Unsupported
from heedful.metrics import Better, Evaluation, Metric, Want
from heedful.models import Offer
from heedful.perturb.masks import generator

_TRIED = 4
"""How many candidate texts are tried for each neighbour."""


@cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """Words of film reviews, each with its synonyms."""
    lines = files("heedful.metrics").joinpath("neighbours.txt").read_text(encoding="utf-8").splitlines()
    groups = [line.split() for line in lines]
    return {word: tuple(other for other in group if other != word) for group in groups for word in group}


def misspelt(word: str, rng: np.random.Generator) -> str:
    """The word with two letters swapped, one lost or one doubled; the first letter stays in longer words."""
    first = 1 if len(word) > 3 else 0
    swaps = [index for index in range(first, len(word) - 1) if word[index] != word[index + 1]]
    kind = rng.choice(["swap", "lose", "double"] if swaps else ["lose", "double"])
    if kind == "swap":
        index = int(rng.choice(swaps))
        return word[:index] + word[index + 1] + word[index] + word[index + 2 :]
    index = int(rng.integers(first, len(word)))
    return word[:index] + ("" if kind == "lose" else word[index] * 2) + word[index + 1 :]


def neighbours(document: Document, rng: np.random.Generator) -> Iterator[str]:
    """Texts with one word changed wherever it occurs: alternately a synonym and a misspelling, no text twice.

    The words come in random order. If there are words of four letters or more only these are misspelt, because shorter
    ones often become other words.
    """
    words = list(dict.fromkeys(word.lower() for word in document.word_texts))
    words = [words[index] for index in rng.permutation(len(words))]
    spelt = [word for word in words if word.isalpha() and len(word) > 3]
    spelt = spelt or [word for word in words if word.isalnum() and len(word) > 1]
    replacements = [(word, other) for word in words for other in synonyms().get(word, ())]
    order = [replacements[index] for index in rng.permutation(len(replacements))]
    seen = {document.text}
    for number in range(max(len(order), len(spelt))):
        changes = [
            *order[number : number + 1],
            *((word, misspelt(word, rng)) for word in spelt[number : number + 1]),
        ]
        for word, other in changes:
            text = _changed(document, word, other)
            if text not in seen:
                seen.add(text)
                yield text


def _changed(document: Document, word: str, other: str) -> str:
    """The text with one word replaced by another; capital letters are kept."""
    parts, end = [], 0
    for (start, stop), old in zip(document.word_spans, document.word_texts, strict=True):
        if old.lower() == word:
            spelt = other.upper() if old.isupper() and len(old) > 1 else other
            spelt = spelt[0].upper() + spelt[1:] if old[0].isupper() else spelt
            parts += [document.text[end:start], spelt]
            end = stop
    return "".join([*parts, document.text[end:]])


@final
@dataclass(frozen=True)
class TextRobustness(Metric):
    """Change of the explanation when a word is replaced by a synonym or misspelt.

    The mean of ‖φ(x) − φ(x′)‖, with φ scaled to length 1, over `n_neighbours` texts with one word changed. Only texts
    count on which the probability of the target changes by at most `most_moved`: where the output changes, so should
    the explanation. Units are compared by position, so texts with another number of units do not count either.

    After Alvarez-Melis & Jaakkola, 2018. Differs from the source: texts have no distance to divide the change by.
    """

    name: ClassVar[str] = "text-robustness"
    question: ClassVar[str] = "Does the explanation survive a synonym or a misspelling?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Alvarez-Melis & Jaakkola, 2018, arXiv:1806.08049, on words"
    not_for: ClassVar[str] = "faithfulness; models of languages other than English, where only misspellings are tried."
    needs: ClassVar[frozenset[Offer]] = frozenset()
    wants: ClassVar[frozenset[Want]] = frozenset({"again"})
    bounds: ClassVar[tuple[float, float]] = (0.0, 2.0)

    n_neighbours: int = 4
    most_moved: float = 0.05
    seed: int = 0

    def measure(self, evaluation: Evaluation) -> float:
        if self.n_neighbours < 1:
            raise BadInput(f"needs n_neighbours ≥ 1; {self.n_neighbours} was given.", self.name)
        texts = self._near(evaluation)
        if not texts:
            raise Unsupported("every synonym and misspelling changed the output too much.", self.name, ": ")
        return float(np.mean([evaluation.distance(evaluation.rerun(text=text)) for text in texts]))

    def _near(self, evaluation: Evaluation) -> list[str]:
        """The first neighbours with the same number of units and nearly the same output."""
        document, unit, model = evaluation.explanation.document, evaluation.explanation.unit, evaluation.question.model
        if document.picture is not None:
            raise Unsupported("an image has no words.", self.name, ": ")
        if document.segments is not None and (document.segments[document.words != SPECIAL] == 1).any():
            raise Unsupported("pairs of texts are not supported.", self.name, ": ")
        tried = neighbours(document, generator(self.seed, document))
        target = replace(evaluation.explanation.target, against=None, scale="probability")
        before = target.of(evaluation.question.logits)[0]
        near: list[str] = []
        for text in islice(tried, _TRIED * self.n_neighbours):
            read = model.encode(text)
            alike = read.n_units("word") == document.n_units("word") and read.n_units(unit) == len(evaluation.scores)
            if alike and read.known[read.words != SPECIAL].any():
                after = target.of(model.logits([read]))[0]
                near += [text] * bool(abs(after - before) <= self.most_moved)
            if len(near) == self.n_neighbours:
                break
        return near
