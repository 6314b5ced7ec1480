"""The histogram task: how often the last letter of a sequence occurs in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from heedful.datasets import Dataset, Example, Split
from heedful.errors import BadInput

_LETTERS = "datibcefghjklmnopqrsuvwxyz"
_SIZES = {"train": 20_000, "validation": 2_000, "test": 2_000}


@final
@dataclass(frozen=True)
class Histogram(Dataset):
    """Ten letters, and how often the last of them occurs: 20,000 / 2,000 / 2,000 drawn texts, each of them once.

    The counting task of Weiss, Goldberg & Yahav (2021), arXiv:2106.06981, and Cui et al. (2024), arXiv:2402.03902: the
    letters are independent, all `n_letters` equally likely. There the letter at every position is counted; here the
    last one, so that a text has one label. The rationale is every place of the counted letter.
    """

    name: ClassVar[str] = "histogram"
    classes: ClassVar[tuple[str, ...]] = (
        *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    )

    n_letters: int = 15
    text_seed: int = 0

    def __post_init__(self) -> None:
        if not 6 <= self.n_letters <= len(_LETTERS) or self.text_seed < 0:
            raise BadInput(f"Histogram needs n_letters of 6 to {len(_LETTERS)} and text_seed ≥ 0.")

    def examples(self, split: Split) -> Sequence[Example]:
        rng, n = np.random.default_rng(self.text_seed), sum(_SIZES.values())
        # So few letters repeat texts: twice as many are drawn, and a text counts once.
        drawn = rng.integers(self.n_letters, size=(2 * n, len(self.classes)))
        numbers = drawn @ self.n_letters ** np.arange(drawn.shape[1])
        _, first = np.unique(numbers, return_index=True)
        start = {"train": 0, "validation": _SIZES["train"], "test": n - _SIZES["test"]}[split]
        return [_example(row) for row in drawn[np.sort(first)[start : start + _SIZES[split]]]]


def _example(row: np.ndarray) -> Example:
    # A letter and a space take two characters.
    places = tuple((2 * place, 2 * place + 1) for place in np.flatnonzero(row == row[-1]).tolist())
    return Example(" ".join(_LETTERS[number] for number in row), len(places) - 1, places)
