import numpy as np
import pytest

from tests.evaluation.probes.models import TEXTS, Stopped, inquiry_of, model_of

MODEL = model_of("single-layer")


def test_values_of_texts_become_columns_with_gaps():
    inquiry = inquiry_of(MODEL)
    rows = [{"a": 1.0, "b": 2.0}, {}, {"a": np.nan}, {"a": np.inf, "c": 0.0}, {}, {}]
    columns = inquiry.over_texts("some", rows.__getitem__)
    assert [*columns] == ["a", "b", "c"]
    assert np.isnan(columns["a"]).tolist() == [False, *[True] * 5]
    assert columns["c"][3] == 0
    assert columns["b"][0] == 2
    assert len(inquiry.over_texts("some", rows.__getitem__, 2)["a"]) == 2


def test_finished_parts_are_read_from_the_folder(tmp_path):
    measured = []
    inquiry = inquiry_of(MODEL, TEXTS * 8, folder=tmp_path)

    def measure(index, most=30):
        if len(measured) >= most:
            raise Stopped
        measured.append(index)
        return {"a": index / 7 if index else float("nan")}

    with pytest.raises(Stopped):
        inquiry.over_texts("some", measure)
    del measured[:]
    shares = []
    inquiry.watch = shares.append
    columns = inquiry.over_texts("some", lambda index: measure(index, 100))
    assert measured == [*range(20, 48)]
    assert np.isnan(columns["a"][0])
    assert columns["a"][1:].tolist() == [index / 7 for index in range(1, 48)]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_random_numbers_depend_on_the_seed_and_the_text_alone():
    odd = "good \ud800 film"
    first, other = inquiry_of(MODEL, [TEXTS[0], TEXTS[1], odd]), inquiry_of(MODEL, [TEXTS[1], TEXTS[0]])
    assert first.rng(0).random() == other.rng(1).random() != first.rng(1).random()
    assert first.rng(0).random() != inquiry_of(MODEL, TEXTS[:1], seed=1).rng(0).random()
    assert 0 < first.rng(2).random() < 1


def test_attention_of_a_text_is_computed_once():
    inquiry = inquiry_of(MODEL)
    assert inquiry.attention(1) is inquiry.attention(1)
    assert inquiry.attention(1).document.text == TEXTS[1]
