"""What explanations of many texts show first: counts, accuracy, the strongest words of each target, the mistakes."""

from collections import Counter
from math import isfinite
from typing import NamedTuple, final

from heedful.explanation import Explanation
from heedful.explanations import Explanations
from heedful.explanations.words import WordScores, one_kind, word_scores
from heedful.statistics.intervals import wilson


@final
class TargetWords(NamedTuple):
    """The strongest words of the texts that are explained for one target, and of the mistakes among them."""

    target: str
    n_texts: int
    words: list[WordScores]
    n_wrong: int
    wrong: list[WordScores]

    @property
    def axis(self) -> tuple[float, float]:
        """The ends of an axis with zero and all words and intervals on it."""
        values = [v for row in self.words for v in (row.mean, row.low, row.high) if isfinite(v)]
        return min(0.0, *values), max(1e-9, *values)


def overview(explanations: Explanations, n_words: int) -> tuple[list[str], list[TargetWords], Explanations]:
    """Sentences about the texts, this many words of each target, and the mistakes, the most confident first."""
    items = [item for item in explanations if isinstance(item, Explanation)]
    judged = [right for right in explanations.right if right is not None]
    mistakes = explanations.errors() if judged else explanations[:0]
    # A sentence or patch occurs in one text, so it has no mean over texts.
    has_words = all(item.unit in ("token", "word", "type") for item in items)
    words = word_scores(explanations) if has_words else []
    # A word that drives a mistake is rare: often it occurs in no other one.
    wrong = word_scores(mistakes, min_texts=1) if has_words else []
    n_wrong = Counter(item.target.name for item in mistakes if isinstance(item, Explanation))
    targets = [
        TargetWords(name, n_texts, _of(name, words)[:n_words], n_wrong[name], _of(name, wrong)[:n_words])
        for name, n_texts in Counter(item.target.name for item in items).most_common()
    ]
    return _sentences(explanations, items, judged), targets, mistakes


def _of(target: str, rows: list[WordScores]) -> list[WordScores]:
    return [row for row in rows if row.target == target]


def _sentences(explanations: Explanations, items: list[Explanation], judged: list[bool]) -> list[str]:
    signed = "" if one_kind(explanations) else " (unsigned: scores have no sign)"
    method = f", explained by {items[0].method}{signed}" if items else ""
    sentences = [f"{explanations!r}"[1:-1].capitalize() + f"{method}."]
    if items:
        sentences.append(f"Scores are for the target of each text, on the {items[0].target.scale} scale.")
    if judged:
        low, high = wilson(sum(judged), len(judged))
        share = f"{sum(judged) / len(judged):.1%} [{low:.1%}, {high:.1%}]"
        sentences.append(f"The model is right on {sum(judged):,} of {len(judged):,} labelled texts: {share}.")
    reasons = Counter(explanations.refusals.values())
    sentences += [f"Refused, {n} text{'s' * (n > 1)}: {reason}" for reason, n in reasons.most_common(3)]
    if len(reasons) > 3:
        sentences.append(f"{len(reasons) - 3} other reasons are in `refusals`.")
    return sentences


def classes_of(explanations: Explanations, place: int) -> str:
    """The predicted class with the output, and the label, of one text."""
    item, names = explanations[place], ("predicted", "label")
    numbers = (explanations.predicted[place], explanations.labels[place])
    known = [f"{name} {explanations.classes[n]}" for name, n in zip(names, numbers, strict=True) if n is not None]
    output = [f"f({item.target.name}) = {item.output:+.3g}"] if isinstance(item, Explanation) else []
    return ", ".join([*known, *output])
