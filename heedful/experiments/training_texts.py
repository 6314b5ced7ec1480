"""Labelled texts to train small classifiers, and others to test them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from heedful.datasets import Dataset, Example, Split
from heedful.document import Pair
from heedful.experiments.reviews import synthetic_reviews

THEN = "=>"
"""The word between the two texts of a pair; the splitter treats it as one word."""

_TOPICS = {
    "world": ("minister", "election", "treaty", "border", "embassy", "parliament"),
    "sports": ("goal", "coach", "league", "striker", "season", "medal"),
    "business": ("shares", "profit", "merger", "bank", "prices", "investors"),
    "sci/tech": ("software", "planet", "chip", "rocket", "browser", "genome"),
}
_COMMON = (
    "the",
    "a",
    "of",
    "said",
    "on",
    "monday",
    "new",
    "after",
    "two",
    "that",
    "in",
    "its",
    "more",
    "would",
    "from",
)
_WHO = ("a man", "a woman", "two boys", "a dog", "the children", "a group of people")
_DOES = ("in the park", "near a lake", "on a busy street", "in front of a shop", "at the beach", "by the old bridge")
_HYPOTHESES = {
    "entailment": ("{who} outside", "someone is there and it is {who}"),
    "neutral": ("{who} waiting for a sad friend", "{who} on the way to win a first prize"),
    "contradiction": ("nobody is there but {who} asleep at home", "{who} sleeping in a bed"),
}


@final
@dataclass(frozen=True)
class TrainingTexts:
    """Training and test texts; texts with the same name are split into words only once."""

    name: str
    classes: tuple[str, ...]
    train: Sequence[Example]
    test: Sequence[Example]


def dataset_texts(dataset: Dataset, train: Split = "train", test: Split = "test") -> TrainingTexts:
    """Two splits of a data set, each text as one string."""
    parts = [
        [Example(as_one_text(example.text), example.label) for example in dataset.examples(s)] for s in (train, test)
    ]
    return TrainingTexts(dataset.name, dataset.classes, *parts)


def as_one_text(text: Any) -> str:
    """A pair as one text: the first text, `=>`, the second. LIME may remove the `=>` too."""
    return f"{text.first} {THEN} {text.second}" if isinstance(text, Pair) else text


def synthetic_sentiment(n_train: int, n_test: int, seed: int) -> TrainingTexts:
    """Synthetic reviews; training and test texts come from one sample."""
    drawn = [Example(review.text, review.label) for review in synthetic_reviews(n_train + n_test, seed)]
    return TrainingTexts("synthetic-reviews", ("negative", "positive"), drawn[:n_train], drawn[n_train:])


def synthetic_topics(n_train: int, n_test: int, seed: int) -> TrainingTexts:
    """Synthetic news on four topics; about one word in four is specific to its topic."""

    def news(topic: str, rng: np.random.Generator) -> str:
        return " ".join(
            str(rng.choice(_TOPICS[topic] if place == 0 or rng.random() < 0.25 else _COMMON))
            for place in range(rng.integers(16, 30))
        )

    return _drawn("synthetic-topics", tuple(_TOPICS), n_train, n_test, seed, news)


def synthetic_pairs(n_train: int, n_test: int, seed: int) -> TrainingTexts:
    """Synthetic premises and hypotheses; the hypothesis alone determines the label, as pooling cannot compare texts."""

    def pair(answer: str, rng: np.random.Generator) -> str:
        who, where = str(rng.choice(_WHO)), str(rng.choice(_DOES))
        return as_one_text(Pair(f"{who} {where}", str(rng.choice(_HYPOTHESES[answer])).format(who=who)))

    return _drawn("synthetic-pairs", tuple(_HYPOTHESES), n_train, n_test, seed, pair)


def _drawn(
    name: str,
    classes: tuple[str, ...],
    n_train: int,
    n_test: int,
    seed: int,
    text: Callable[[str, np.random.Generator], str],
) -> TrainingTexts:
    rng = np.random.default_rng(seed)
    drawn = [
        Example(text(classes[number % len(classes)], rng), number % len(classes)) for number in range(n_train + n_test)
    ]
    return TrainingTexts(name, classes, drawn[:n_train], drawn[n_train:])
