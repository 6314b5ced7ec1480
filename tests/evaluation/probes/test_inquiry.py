import numpy as np
import pytest
from scipy import stats

from heedful.evaluation.probes.inquiry import difference_of, is_above, is_below, mean_quantity
from heedful.statistics.quantity import Quantity, mean_over_texts
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


def test_a_mean_leaves_out_texts_without_a_value():
    values = np.array([0.2, np.nan, 0.5, 0.1, 0.9, 0.4, np.nan])
    assert mean_quantity(values) == mean_over_texts(values[~np.isnan(values)], (0.0, 1.0))
    assert np.isnan(mean_quantity(np.full(3, np.nan)).value)


@pytest.mark.parametrize("n", [1, 4, 20, 200])
def test_of_equal_values_the_interval_is_that_of_a_proportion(n):
    none, all_ = mean_quantity(np.zeros(n)), mean_quantity(np.ones(n))
    exact = stats.binomtest(0, n).proportion_ci(method="exact")
    assert (none.low, none.high) == pytest.approx((exact.low, exact.high))
    assert (all_.low, all_.high) == pytest.approx((1 - exact.high, 1))
    wide = mean_quantity(np.zeros(n), (-1.0, 1.0))
    assert (wide.low, wide.high) == pytest.approx((-exact.high, exact.high))


def test_of_few_different_values_nothing_is_known():
    assert mean_quantity(np.array([0.25, 0.75])) == Quantity(0.5, 0.0, 1.0)


def test_differences_are_paired_and_compared_with_bounds():
    one, other = np.array([0.5, np.nan, 0.25] * 5), np.array([0.25, 1.0, 0.5] * 5)
    assert difference_of(one, other).value == pytest.approx(0)
    mean = Quantity(0.5, 0.4, 0.6)
    assert is_above(mean, 0.39)
    assert not is_above(mean, 0.4)
    assert is_below(mean, 0.61)
    assert not is_below(mean, 0.6)
    assert not is_above(Quantity(0.5))
    assert not is_below(Quantity(0.5))
