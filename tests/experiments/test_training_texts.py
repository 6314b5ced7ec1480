from dataclasses import dataclass
from typing import ClassVar

import pytest

from heedful.datasets import Dataset, Example
from heedful.document import Pair
from heedful.experiments.training_texts import (
    as_one_text,
    dataset_texts,
    made_up_pairs,
    made_up_sentiment,
    made_up_topics,
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
    found = dataset_texts(Pairs(), train="validation", test="train")
    assert found.train == [Example("a validation text => and another", 1)]
    assert found.test == [Example("a train text => and another", 1)]
    assert (found.name, found.classes) == ("pairs", ("no", "yes"))


@pytest.mark.parametrize("make", [made_up_sentiment, made_up_topics, made_up_pairs])
def test_made_up_texts_are_balanced_and_come_from_the_seed(make):
    found = make(60, 24, 0)
    assert (len(found.train), len(found.test)) == (60, 24)
    n = len(found.classes)
    assert [sum(e.label == label for e in found.train) for label in range(n)] == [60 // n] * n
    assert make(60, 24, 0) == found
    assert make(60, 24, 1) != found


def test_a_topic_s_words_are_its_own():
    found = made_up_topics(200, 4, 0)
    words = [{word for e in found.train if e.label == label for word in e.text.split()} for label in range(4)]
    for label in range(4):
        others = set().union(*(words[other] for other in range(4) if other != label))
        assert all((words[label] - others) & set(e.text.split()) for e in found.train if e.label == label)
