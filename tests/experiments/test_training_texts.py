from dataclasses import dataclass
from typing import ClassVar

import pytest

from heedful.datasets import Dataset, Example
from heedful.document import Pair
from heedful.experiments.training_texts import (
    as_one_text,
    dataset_texts,
    synthetic_pairs,
    synthetic_sentiment,
    synthetic_topics,
)
from heedful.models.vocabulary import split_plain


@dataclass(frozen=True)
class Pairs(Dataset):
    name: ClassVar[str] = "pairs"
    classes: ClassVar[tuple[str, ...]] = ("no", "yes")

    def examples(self, split):
        return [Example(Pair(f"a {split} text", "and another"), 1)]


def test_a_pair_becomes_one_text_with_one_word_between():
    assert split_plain(as_one_text(Pair("It rains.", "It is wet."))) == [
        "it",
        "rains",
        ".",
        "=>",
        "it",
        "is",
        "wet",
        ".",
    ]
    assert as_one_text("one text") == "one text"


def test_splits_are_taken_as_they_are_named():
    texts = dataset_texts(Pairs(), train="validation", test="train")
    assert texts.train == [Example("a validation text => and another", 1)]
    assert texts.test == [Example("a train text => and another", 1)]
    assert (texts.name, texts.classes) == ("pairs", ("no", "yes"))


@pytest.mark.parametrize("make", [synthetic_sentiment, synthetic_topics, synthetic_pairs])
def test_synthetic_texts_are_balanced_and_come_from_the_seed(make):
    texts = make(60, 24, 0)
    assert (len(texts.train), len(texts.test)) == (60, 24)
    n = len(texts.classes)
    assert [sum(e.label == label for e in texts.train) for label in range(n)] == [60 // n] * n
    assert make(60, 24, 0) == texts
    assert make(60, 24, 1) != texts


def test_a_topic_s_words_are_its_own():
    texts = synthetic_topics(200, 4, 0)
    words = [{word for e in texts.train if e.label == label for word in e.text.split()} for label in range(4)]
    for label in range(4):
        others = set().union(*(words[other] for other in range(4) if other != label))
        assert all((words[label] - others) & set(e.text.split()) for e in texts.train if e.label == label)
