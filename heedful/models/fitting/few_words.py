"""A logistic model of at most ten words, so that the words it uses are known."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float

from heedful.datasets.texts import sample_by_hash, texts_in
from heedful.errors import BadInput
from heedful.models.black_box import WORD, BlackBox
from heedful.statistics.logistic import fit_logistic

_RAREST, _TEXTS, _RIDGE = 0.01, 5_000, 1e-3


def few_words(dataset: Any, n_words: int = 10, split: str = "train") -> BlackBox:
    """A logistic regression on whether each of at most `n_words` words is in a text; `model.gold` are these words.

    `dataset` is a name or what `heedful.trust` takes, with labels of two classes; at most 5,000 texts are used. The
    words are those of letters, in 1 % of the texts or more, whose presence has the largest correlation with the class.
    The model reads no other word, so `gold-recall` of `heedful.trust` has a known answer; trust takes `model.gold`.

        model = heedful.few_words("imdb")
        heedful.trust(model, "imdb", unit="type")

    Ribeiro et al., 2016 (arXiv:1602.04938), Section 5.2; lecture, chapter 10.2: a logistic classifier of at most 10
    features, the gold features. Differs from the source: the words are chosen by correlation, and a text may contain
    fewer of them than 10.
    """
    if not isinstance(n_words, int) or not 1 <= n_words <= 1_000:
        raise BadInput(f"few_words takes 1 to 1,000 words; {n_words!r} was given.")
    data = texts_in(dataset, split)
    chosen = [
        i for i in sample_by_hash(data.texts, _TEXTS) if isinstance(data.texts[i], str) and data.labels[i] is not None
    ]
    kinds = sorted({str(data.labels[i]) for i in chosen})
    if len(kinds) != 2:
        raise BadInput(f"few_words needs texts with labels of two classes; {data.name} has {len(kinds)}.")
    y = np.array([float(str(data.labels[i]) == kinds[1]) for i in chosen])
    bags = [{*_split(data.texts[i])} for i in chosen]
    gold = _chosen(bags, y, n_words, data.name)
    reader = _FewWords(tuple(gold), np.zeros(len(gold)), 0.0)
    weights, bias = fit_logistic(reader.present(bags).astype(np.float64), y, _RIDGE)
    classes = data.classes if len(data.classes) == 2 else kinds
    model = BlackBox(_FewWords(tuple(gold), weights, bias), classes, "[UNK]", "logits")
    model.family, model.gold = f"logistic regression on {len(gold)} words ({', '.join(gold)})", tuple(gold)
    return model


def _chosen(bags: Sequence[set[str]], y: Float[np.ndarray, "text"], n_words: int, name: str) -> list[str]:
    """The words whose presence has the largest correlation with the class."""
    counts = Counter(word for bag in bags for word in bag)
    ones = Counter(word for bag, own in zip(bags, y, strict=True) if own for word in bag)
    usable = sorted(word for word, n in counts.items() if word.isalpha() and _RAREST * len(bags) <= n < len(bags))
    if not usable:
        raise BadInput(f"No word of {name} is in 1 % of the texts and not in all; give more texts.")
    n, of_one = (np.array([table[word] for word in usable], dtype=np.float64) for table in (counts, ones))
    correlation = (of_one - n * y.mean()) / np.sqrt(n * (len(y) - n))
    return [usable[i] for i in np.argsort(-np.abs(correlation), kind="stable")[:n_words]]


@final
@dataclass(frozen=True, eq=False)
class _FewWords:
    """Logits of the two classes, −z/2 and z/2, with z = Σ weights of the words in the text + bias."""

    gold: tuple[str, ...]
    weights: Float[np.ndarray, "feature"]
    bias: float

    def present(self, bags: Sequence[set[str]]) -> Bool[np.ndarray, "text feature"]:
        return np.array([[word in bag for word in self.gold] for bag in bags], dtype=bool).reshape(len(bags), -1)

    def __call__(self, texts: list[str]) -> Float[np.ndarray, "text class"]:
        z = self.present([{*_split(text)} for text in texts]) @ self.weights + self.bias
        return np.column_stack([-z, z]) / 2


def _split(text: str) -> list[str]:
    return [word.casefold() for word in WORD.findall(text)]
