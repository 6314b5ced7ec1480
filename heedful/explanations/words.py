"""Which words matter over many texts: means with intervals, by target, by predicted class, and by right and wrong."""

from collections import defaultdict
from dataclasses import dataclass
from typing import final

import numpy as np

from heedful.errors import BadInput
from heedful.explanation import Explanation
from heedful.explanations import Explanations
from heedful.explanations.refusal import Refusal
from heedful.statistics.intervals import TEXTS_FOR_INTERVAL, mean_intervals

_MANY_TEXTS = 50


@final
@dataclass(frozen=True)
class WordScores:
    """The scores of a word in the texts of one target, and of one group if there are groups.

    A text counts once, with the mean over the word's occurrences; `low` and `high` are the 95 % confidence interval of
    the mean over texts, NaN below five texts.
    """

    word: str
    target: str
    group: str
    mean: float
    mean_abs: float
    low: float
    high: float
    count: int
    n_texts: int


def word_scores(explanations: Explanations, by: str | None = None, min_texts: int | None = None) -> list[WordScores]:
    """Every word of at least `min_texts` texts, by mean |score|, the largest first.

    Words are equal if they are after `str.casefold`. Texts that are explained for different targets are never mixed.
    The default of `min_texts` is 5 from 50 texts on, and 1 below.
    """
    least = (TEXTS_FOR_INTERVAL if len(explanations) >= _MANY_TEXTS else 1) if min_texts is None else min_texts
    # The scores of each occurrence, one list per text.
    texts: dict[tuple[str, str, str], list[list[float]]] = defaultdict(list)
    for item, group in zip(explanations, _groups(explanations, by), strict=True):
        if isinstance(item, Explanation) and group is not None:
            for word, scores in word_occurrences(item).items():
                texts[word, item.target.name, group].append(scores)
    # Words of equally many texts together: one matrix of all words and texts would be mostly empty, and large.
    sizes = defaultdict(list)
    for key, lists in texts.items():
        sizes[len(lists)].append(key)
    rows = [row for n, keys in sizes.items() if n >= least for row in _rows({key: texts[key] for key in keys})]
    return sorted(rows, key=lambda row: (-row.mean_abs, row.word, row.target, row.group))


def _rows(texts: dict[tuple[str, str, str], list[list[float]]]) -> list[WordScores]:
    """One row per word; all words occur in the same number of texts."""
    means = np.array([[sum(scores) / len(scores) for scores in lists] for lists in texts.values()])
    sizes = np.array([[sum(map(abs, scores)) / len(scores) for scores in lists] for lists in texts.values()])
    lows, highs = mean_intervals(means)
    columns = (means.mean(axis=1).tolist(), sizes.mean(axis=1).tolist(), lows.tolist(), highs.tolist())
    return [
        WordScores(word, target, group, mean, mean_abs, low, high, sum(map(len, lists)), len(lists))
        for ((word, target, group), lists), mean, mean_abs, low, high in zip(texts.items(), *columns, strict=True)
    ]


def word_occurrences(explanation: Explanation) -> dict[str, list[float]]:
    """The scores of each word's occurrences in one text; words are case-folded, tokens are summed to words."""
    if explanation.unit not in ("token", "word", "type"):
        raise BadInput(f'Words are needed, not a {explanation.unit}; explain the texts with unit="word".')
    words = explanation.to("word") if explanation.unit == "token" else explanation
    scores: dict[str, list[float]] = defaultdict(list)
    for word, score in zip(words.units, words.scores.tolist(), strict=True):
        scores[word.casefold()].append(score)
    return scores


def one_kind(explanations: Explanations) -> bool:
    """Whether the scores are signed; explanations whose scores cannot be averaged are refused."""
    items = [item for item in explanations if not isinstance(item, Refusal)]
    kinds = {(item.method, item.target.scale) for item in items}
    if len(kinds) > 1:
        each = ", ".join(f"{method} of the {scale}" for method, scale in sorted(kinds))
        raise BadInput(f"Scores of different methods or scales cannot be averaged; here are {each}.")
    return all(item.signed for item in items)


def _groups(explanations: Explanations, by: str | None) -> list[str | None]:
    """The group of each text; None for a text of unknown class or label."""
    one_kind(explanations)
    if by is None:
        return [""] * len(explanations)
    if by == "class":
        return [None if number is None else explanations.classes[number] for number in explanations.predicted]
    if by != "error":
        raise BadInput(f'by must be None, "class" or "error"; {by!r} was given.')
    explanations.check_labels()
    return [None if right is None else "right" if right else "wrong" for right in explanations.right]
