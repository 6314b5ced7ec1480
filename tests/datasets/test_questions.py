"""Stories and questions, answered by reading."""

from collections import Counter

import numpy as np
import pytest

from heedful.datasets.questions import Questions
from heedful.errors import BadInput


def test_the_answer_is_where_the_person_went_last_and_the_rationale_is_that_sentence():
    for example in Questions().examples("test"):
        sentences = example.text.first.removesuffix(".").split(". ")
        person = example.text.second.removeprefix("Where is ").removesuffix("?")
        about = [sentence for sentence in sentences if sentence.startswith(person + " ")]
        assert Questions.classes[example.label] == about[-1].split()[-1]
        ((start, end),) = example.rationale
        assert example.text.first[start:end] == about[-1] + "."
        assert example.text.first.count(person, end) == 0
        assert 2 <= len(sentences) <= 6


def test_splits_have_their_sizes_and_all_answers_are_equally_likely():
    assert [len(Questions().examples(split)) for split in ("validation", "test")] == [1_000, 1_000]
    assert Questions().examples("test") == Questions().examples("test") != Questions(text_seed=1).examples("test")
    rows = Questions().examples("train")
    assert len(rows) == 10_000
    counts = Counter(example.label for example in rows)
    assert np.array([counts[label] for label in range(6)]) / 10_000 == pytest.approx(1 / 6, rel=0.06)


@pytest.mark.parametrize("settings", [{"most": 1}, {"text_seed": -1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(BadInput, match="most ≥ 2 and text_seed ≥ 0"):
        Questions(**settings)
