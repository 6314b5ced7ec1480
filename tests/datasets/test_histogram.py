"""The counting task: what is drawn, and that label and rationale are those of a count by hand."""

from collections import Counter

import numpy as np
import pytest

from heedful.datasets.histogram import Histogram
from heedful.errors import BadInput


def test_splits_have_their_sizes_are_the_same_every_time_and_share_no_text():
    splits = {split: Histogram().examples(split) for split in ("train", "validation", "test")}
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 20_000, "validation": 2_000, "test": 2_000}
    assert Histogram().examples("test") == splits["test"]
    assert Histogram(text_seed=1).examples("test") != splits["test"]
    assert len({example.text for rows in splits.values() for example in rows}) == 24_000


def test_the_label_counts_the_last_letter_and_the_rationale_marks_it():
    for example in Histogram(n_letters=6).examples("test"):
        letters = example.text.split()
        assert (
            Histogram.classes[example.label]
            == [*("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")][
                letters.count(letters[-1]) - 1
            ]
        )
        assert example.rationale is not None
        assert len(example.rationale) == letters.count(letters[-1])
        assert {example.text[start:end] for start, end in example.rationale} == {letters[-1]}


def test_all_letters_are_equally_likely():
    counts = Counter(letter for example in Histogram().examples("train") for letter in example.text.split())
    assert len(counts) == 15
    assert np.array([*counts.values()]) / 200_000 == pytest.approx(1 / 15, rel=0.03)


@pytest.mark.parametrize("settings", [{"n_letters": 5}, {"n_letters": 27}, {"text_seed": -1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(BadInput, match="n_letters of 6 to 26"):
        Histogram(**settings)
