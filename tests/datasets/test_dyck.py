"""Beginnings of bracket strings, read by a stack."""

import numpy as np
import pytest

from heedful.datasets.dyck import DyckPrefixes
from heedful.errors import BadInput


@pytest.mark.parametrize("nesting", [1, 4])
def test_the_label_is_the_bracket_that_closes_the_last_open_one_and_the_rationale_marks_that(nesting):
    for example in DyckPrefixes(nesting=nesting).examples("test"):
        stack = []
        for place, bracket in enumerate(example.text):
            if bracket in "([":
                stack.append((bracket, place))
            elif bracket != " ":
                opened, _ = stack.pop()
                assert opened + bracket in ("()", "[]")
            assert len(stack) <= nesting
        opened, place = stack[-1]
        assert example.label == "([".index(opened)
        assert example.rationale == ((place, place + 1),)


def test_splits_have_their_sizes_and_differ_by_seed():
    assert [len(DyckPrefixes().examples(split)) for split in ("validation", "test")] == [2_000, 2_000]
    assert DyckPrefixes().examples("test") == DyckPrefixes().examples("test")
    assert DyckPrefixes().examples("test") != DyckPrefixes(text_seed=1).examples("test")


def test_types_are_equally_likely_and_all_lengths_occur():
    rows = DyckPrefixes().examples("train")
    assert len(rows) == 20_000
    assert np.mean([example.label for example in rows]) == pytest.approx(0.5, abs=0.015)
    assert {len(example.text.split()) for example in rows} == set(range(1, 29))


@pytest.mark.parametrize("settings", [{"nesting": 0}, {"longest": 0}, {"text_seed": -1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(BadInput, match="nesting ≥ 1, longest ≥ 1 and text_seed ≥ 0"):
        DyckPrefixes(**settings)
