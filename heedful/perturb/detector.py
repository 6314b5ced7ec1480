"""A small classifier that tells masked texts from texts by how usual their words and neighbours are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import final

import numpy as np
from jaxtyping import Float

from heedful.document import SPECIAL, Absence, Document
from heedful.document.draws import draws_of
from heedful.models import Model
from heedful.models.altered import replacement_id_of
from heedful.perturb.draws import Redrawn
from heedful.statistics.logistic import fit_logistic
from heedful.statistics.quantity import Quantity, mean_over_texts

Words = Sequence[str]
_RIDGE, _N = 1e-3, 6


@final
@dataclass(frozen=True, eq=False)
class Detector:
    """Logistic regression on six numbers of a text: P(masked).

    Whether the replacement token is in it, its share, the mean surprise of words and of words after the word before,
    the share of pairs of neighbours that were never seen, and the length. Words and pairs are counted in other texts.
    """

    singles: Counter[str]
    pairs: Counter[tuple[str, str]]
    gone: str
    weights: Float[np.ndarray, "_"]
    centre: Float[np.ndarray, "feature"]
    spread: Float[np.ndarray, "feature"]

    @staticmethod
    def fit(counted: Sequence[Words], texts: Sequence[Words], masked: Sequence[Words], gone: str) -> "Detector":
        """Counts words in some texts, and fits the regression to other texts and masked ones."""
        singles, pairs = Counter(w for row in counted for w in row), Counter(p for w in counted for p in pairwise(w))
        nothing = np.zeros(_N)
        bare = Detector(singles, pairs, gone, np.zeros(_N + 1), nothing, nothing + 1)
        x = np.array([bare._features(words) for words in (*texts, *masked)])
        centre, spread = x.mean(axis=0), x.std(axis=0) + 1e-9
        y = np.repeat([0.0, 1.0], [len(texts), len(masked)])
        weights, bias = fit_logistic((x - centre) / spread, y, _RIDGE)
        return Detector(singles, pairs, gone, np.append(weights, bias), centre, spread)

    def log_odds(self, texts: Sequence[Words]) -> Float[np.ndarray, "text"]:
        """The log-odds that each text is masked."""
        x = np.array([self._features(words) for words in texts]).reshape(len(texts), _N)
        return (x - self.centre) / self.spread @ self.weights[:-1] + self.weights[-1]

    def _features(self, words: Words) -> list[float]:
        kept = [word for word in words if word != self.gone]
        if not kept:
            return [float(len(words) > 0), float(len(words) > 0), 0.0, 0.0, 0.0, 0.0]
        n, size = self.singles.total(), len(self.singles) + 1
        p = {word: (self.singles[word] + 1) / (n + size) for word in {*words}}
        neighbours = [(a, b) for a, b in pairwise(words) if self.gone not in (a, b)]
        surprise = [-log((self.pairs[a, b] + p[b]) / (self.singles[a] + 1)) for a, b in neighbours]
        unseen = [(a, b) not in self.pairs for a, b in neighbours]
        return [
            float(len(kept) < len(words)),
            1 - len(kept) / len(words),
            -sum(log(p[word]) for word in kept) / len(kept),
            sum(surprise) / max(1, len(surprise)),
            sum(unseen) / max(1, len(unseen)),
            log(len(words)),
        ]


def words_read(document: Document) -> list[str]:
    """The words of a text as the model reads them; an unknown one is the token that it is read as."""
    unknown = {
        int(w): f"#{int(i)}" for w, i, k in zip(document.words, document.ids, document.known, strict=True) if not k
    }
    return [unknown.get(number, word.casefold()) for number, word in enumerate(document.word_keys)]


def gone_of(model: Model) -> str:
    """The replacement of removed words, among the words of `words_read`."""
    return f"#{replacement_id_of(model)}"


def masked_words(model: Model, document: Document, keep: np.ndarray, absence: Absence) -> list[str]:
    """The words of one masked text, by a mask over words; of an absence that draws words, the first draw."""
    tokens = keep[document.unit_of("word")] | (document.words == SPECIAL)
    draws = draws_of(absence)
    if draws is not None:
        copy = next(Redrawn(model, document, draws._replace(n=1)).texts(tokens[None]))
        return words_read(model.encode(copy))
    kind, _, word = absence.partition(":")
    kept = np.ones(len(document.word_keys), dtype=bool)
    kept[document.words[~tokens]] = False
    gone = word.casefold() if kind == "replace" and word else gone_of(model)
    words = [own if k else gone for own, k in zip(words_read(document), kept, strict=True)]
    return [own for own, k in zip(words, kept, strict=True) if k] if kind == "delete" else words


def separation(texts: Sequence[Words], masked: Sequence[Words], gone: str) -> Quantity:
    """The AUROC of a `Detector` on texts that it was not fitted to, with its interval over texts; ½ is chance.

    The i-th masked text is one of the i-th text. A third of the texts is counted, a third fitted, and a third
    distinguished, in turns. Each text counts with the share of the other side that it is on the right side of (DeLong,
    DeLong & Clarke-Pearson, 1988). The interval takes the fitted classifiers as given.
    """
    fold, values = np.arange(len(texts)) % 3, np.zeros(len(texts))
    for test in range(3):
        counted, fitted, own = (np.flatnonzero(fold == (test + step) % 3).tolist() for step in (1, 2, 0))
        pick = [texts[i] for i in counted], [texts[i] for i in fitted], [masked[i] for i in fitted]
        detector = Detector.fit(*pick, gone)
        low, high = (detector.log_odds([rows[i] for i in own]) for rows in (texts, masked))
        above = (high[:, None] > low) + 0.5 * (high[:, None] == low)
        values[own] = above.mean(axis=1) + above.mean(axis=0) - above.mean()
    return mean_over_texts(values, (0.0, 1.0))
