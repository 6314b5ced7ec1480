"""The data sets of the debate, as far as they are available: film reviews, film sentences, and news of two classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from heedful.datasets import Dataset, Example, Split
from heedful.datasets.ag_news import AgNews
from heedful.datasets.imdb import Imdb
from heedful.datasets.sst import Sst
from heedful.experiments.reviews import synthetic_reviews
from heedful.models.vocabulary import split_plain

_LONGEST = 400


@final
@dataclass(frozen=True)
class ShortReviews(Dataset):
    """IMDB reviews of at most 400 words: about as many, and as long, as those of Jain & Wallace (2019), Table 1.

    A `share` below 1 keeps that part of the training texts, drawn at random.
    """

    name: ClassVar[str] = "imdb-short"
    classes: ClassVar[tuple[str, ...]] = Imdb.classes

    share: float = 1.0

    def examples(self, split: Split) -> Sequence[Example]:
        rows = [row for row in Imdb(duplicates="drop").examples(split) if len(split_plain(row.text)) <= _LONGEST]
        if split != "train" or self.share == 1:
            return rows
        return [
            rows[place] for place in np.random.default_rng(0).permutation(len(rows))[: round(self.share * len(rows))]
        ]


@final
@dataclass(frozen=True)
class TwoNews(Dataset):
    """AG News of the classes world and business, as in Jain & Wallace (2019), who train on 60,000 texts of the two."""

    name: ClassVar[str] = "ag-news-two"
    classes: ClassVar[tuple[str, ...]] = ("world", "business")

    def examples(self, split: Split) -> Sequence[Example]:
        number = {AgNews.classes.index(name): place for place, name in enumerate(self.classes)}
        rows = AgNews().examples(split)
        return [Example(row.text, number[row.label]) for row in rows if row.label in number]


@final
@dataclass(frozen=True)
class SyntheticReviews(Dataset):
    """Synthetic reviews, for the quick form."""

    name: ClassVar[str] = "synthetic-reviews"
    classes: ClassVar[tuple[str, ...]] = Imdb.classes

    def examples(self, split: Split) -> Sequence[Example]:
        seed, n = {"train": (0, 300), "validation": (1, 60), "test": (2, 100)}[split]
        return [Example(review.text, review.label) for review in synthetic_reviews(n, seed)]


@final
class Corpus(NamedTuple):
    """A data set with the settings of its training."""

    title: str
    dataset: Dataset
    T_max: int
    min_count: int
    n_epochs: int


CORPORA: Mapping[str, Corpus] = {
    "imdb": Corpus("IMDB", ShortReviews(), _LONGEST + 1, 20, 3),
    "imdb-quarter": Corpus("a quarter of IMDB", ShortReviews(0.25), _LONGEST + 1, 20, 6),
    "sst": Corpus("SST", Sst(), 64, 2, 8),
    "ag-news": Corpus("AG News", TwoNews(), 160, 2, 8),
}
"""Words of reviews that occur fewer than 20 times in the training texts are unknown."""

QUICK: Mapping[str, Corpus] = {"synthetic": Corpus("synthetic reviews", SyntheticReviews(), 40, 1, 8)}
