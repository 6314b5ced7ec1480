"""Whether an explanation stays what it is when a word gives way to a synonym, or is misspelt."""

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
"""How many texts are looked at for each neighbour that is wanted."""


@cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """Words of film reviews, each with those that may stand in its place."""
    lines = files("heedful.metrics").joinpath("neighbours.txt").read_text(encoding="utf-8").splitlines()
    groups = [line.split() for line in lines]
    return {word: tuple(other for other in group if other != word) for group in groups for word in group}


def misspelt(word: str, chance: np.random.Generator) -> str:
    """The word with two letters swapped, one lost or one doubled; its first stays where it is if others can move."""
    first = 1 if len(word) > 3 else 0
    swaps = [place for place in range(first, len(word) - 1) if word[place] != word[place + 1]]
    kind = chance.choice(["swap", "lose", "double"] if swaps else ["lose", "double"])
    if kind == "swap":
        place = int(chance.choice(swaps))
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    place = int(chance.integers(first, len(word)))
    return word[:place] + ("" if kind == "lose" else word[place] * 2) + word[place + 1 :]


def neighbours(document: Document, chance: np.random.Generator) -> Iterator[str]:
    """Texts with one word changed wherever it occurs: by turns a synonym and a misspelling, no text twice.

    The words come in random order. Only words of four letters or more are misspelt where there are any, as those of
    fewer become others.
    """
    words = list(dict.fromkeys(word.lower() for word in document.word_texts))
    words = [words[place] for place in chance.permutation(len(words))]
    spelt = [word for word in words if word.isalpha() and len(word) > 3]
    spelt = spelt or [word for word in words if word.isalnum() and len(word) > 1]
    known = [(word, other) for word in words for other in synonyms().get(word, ())]
    order = [known[place] for place in chance.permutation(len(known))]
    seen = {document.text}
    for number in range(max(len(order), len(spelt))):
        changes = [
            *order[number : number + 1],
            *((word, misspelt(word, chance)) for word in spelt[number : number + 1]),
        ]
        for word, other in changes:
            text = _changed(document, word, other)
            if text not in seen:
                seen.add(text)
                yield text


def _changed(document: Document, word: str, other: str) -> str:
    """The text with another word in place of one, its capitals kept."""
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
    """How far the explanation moves when a word gives way to a synonym or is misspelt.

    The mean of ‖φ(x) − φ(x′)‖, with φ brought to length one, over `n_neighbours` texts with one word changed. Those
    count on which the model says nearly the same, its probability of the target moving by `most_moved` at most: where
    the model changes its mind, so should the explanation. Units are compared place by place, so a text that falls into
    other units does not count either.

    After Alvarez-Melis & Jaakkola, 2018, for texts, where distances between inputs have no unit: the change is not
    divided by one.
    """

    name: ClassVar[str] = "text-robustness"
    question: ClassVar[str] = "Does the explanation survive a synonym or a misspelling?"
    better: ClassVar[Better] = "lower"
    source: ClassVar[str] = "Alvarez-Melis & Jaakkola, 2018, arXiv:1806.08049, on words"
    not_for: ClassVar[str] = (
        "faithfulness; and for models of other languages than English, where only misspellings are left."
    )
    needs: ClassVar[frozenset[Offer]] = frozenset()
    wants: ClassVar[frozenset[Want]] = frozenset({"again"})
    default: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 2.0)

    n_neighbours: int = 4
    most_moved: float = 0.05
    seed: int = 0

    def measure(self, evaluation: Evaluation) -> float:
        if self.n_neighbours < 1:
            raise BadInput(f"{self.name} needs at least 1 neighbour; n_neighbours is {self.n_neighbours}.")
        texts = self._near(evaluation)
        if not texts:
            raise Unsupported(f"{self.name}: no synonym or misspelling left the output where it was.")
        return float(np.mean([evaluation.distance(evaluation.rerun(text=text)) for text in texts]))

    def _near(self, evaluation: Evaluation) -> list[str]:
        """The first neighbours that the model reads in as many units and answers alike."""
        document, unit, model = evaluation.explanation.document, evaluation.explanation.unit, evaluation.question.model
        if document.picture is not None:
            raise Unsupported(f"{self.name}: a picture has no words that could be changed.")
        if document.segments is not None and (document.segments[document.words != SPECIAL] == 1).any():
            raise Unsupported(f"{self.name}: words are changed in one text, and this is a pair.")
        tried = neighbours(document, generator(self.seed, document))
        target = replace(evaluation.explanation.target, against=None, scale="log-probability")
        before = np.exp(target.of(evaluation.question.logits))[0]
        found: list[str] = []
        for text in islice(tried, _TRIED * self.n_neighbours):
            read = model.encode(text)
            alike = read.n_units("word") == document.n_units("word") and read.n_units(unit) == len(evaluation.scores)
            if alike and read.known[read.words != SPECIAL].any():
                after = np.exp(target.of(model.logits([read])))[0]
                found += [text] * bool(abs(after - before) <= self.most_moved)
            if len(found) == self.n_neighbours:
                break
        return found
