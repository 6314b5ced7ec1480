import json
from math import isnan

import numpy as np
import pytest
import torch

import heedful
from heedful.features.quality import measure_rows
from heedful.features.source import ArraySource, Source
from heedful.statistics.intervals import jackknife_interval
from heedful.statistics.quantity import Quantity, ratio_of
from tests.features.dictionaries import random_dictionary


def rows_with_a_mean(n, d_e, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d_e)) * np.linspace(0.2, 2, d_e) + 5).astype(np.float32)


def test_metrics_are_those_of_their_formulas():
    rows, dictionary = rows_with_a_mean(300, 8), random_dictionary(24, 8)
    active = dictionary.encode(rows)
    again = dictionary.decode(active).astype(float)
    quality = measure_rows(dictionary, rows)
    whole = ((rows - rows.astype(float).mean(axis=0)) ** 2).sum()
    assert quality.explained_variance.value == pytest.approx(1 - ((rows - again) ** 2).sum() / whole, rel=1e-6)
    assert quality.l0.value == pytest.approx((active > 0).sum(axis=1).mean())
    assert quality.dead_share.value == np.mean(~(active > 0).any(axis=0))
    norms = np.linalg.norm(rows.astype(float), axis=1) * np.linalg.norm(again, axis=1)
    assert quality.cosine.value == pytest.approx(((rows * again).sum(axis=1) / norms).mean(), rel=1e-6)
    assert (quality.n_rows, quality.n_texts, quality.splice) == (300, None, None)


def test_variance_is_that_around_the_mean_of_all_rows_and_not_around_zero():
    dictionary, rows = random_dictionary(24, 8), rows_with_a_mean(300, 8)
    far = rows + 1000
    mean_alone = torch.from_numpy(far.mean(axis=0))
    constant = random_dictionary(24, 8, scale=0.0)
    constant.b_dec.copy_(mean_alone)
    assert measure_rows(constant, far).explained_variance.value == pytest.approx(0, abs=1e-6)
    assert measure_rows(dictionary, far).explained_variance.value < 0


@pytest.mark.parametrize("k", [None, 5])
def test_metrics_do_not_depend_on_the_batch_size(k):
    rows, dictionary = rows_with_a_mean(3000, 16), random_dictionary(48, 16, k=k)
    few, many = (measure_rows(dictionary, rows, batch_size=n).as_dict() for n in (64, 1024))
    for name, value in few.items():
        assert value == many[name] or value == pytest.approx(many[name], rel=1e-5), name


def test_sums_are_exact_beside_a_large_mean():
    # In single precision ‖x‖² summed over these rows would keep no digit of the variance.
    rows = rows_with_a_mean(2000, 4) + 30_000
    exact = rows.astype(float)
    whole = ((exact - exact.mean(axis=0)) ** 2).sum()
    constant = random_dictionary(8, 4, scale=0.0)
    left = ((exact - constant.b_dec.double().numpy()) ** 2).sum()
    assert measure_rows(constant, rows, batch_size=64).explained_variance.value == pytest.approx(1 - left / whole)


def test_intervals_are_over_texts_if_these_are_known():
    rows, dictionary = rows_with_a_mean(400, 8), random_dictionary(24, 8)
    texts = np.repeat(np.arange(20), 20)
    rows = rows + np.random.default_rng(1).normal(size=(20, 1)).repeat(20, axis=0).astype(np.float32) * 3
    own, grouped = measure_rows(dictionary, rows), measure_rows(dictionary, rows, groups=texts)
    assert grouped.explained_variance.value == pytest.approx(own.explained_variance.value)
    assert grouped.n_texts == 20
    assert width_of(grouped.l0) > 2 * width_of(own.l0)
    counts = (dictionary.encode(rows) > 0).sum(axis=1).reshape(20, 20).sum(axis=1)
    without = (counts.sum() - counts) / 380
    assert grouped.l0[1:] == pytest.approx(jackknife_interval(counts.sum() / 400, without))


def width_of(ratio):
    return ratio.high - ratio.low


def test_the_number_of_a_text_need_not_be_its_place():
    rows, dictionary = rows_with_a_mean(60, 8), random_dictionary(24, 8)
    names, order = np.repeat([70, 3, 9, 11, 5, 6], 10), np.random.default_rng(0).permutation(60)
    ordered = measure_rows(dictionary, rows, groups=names)
    assert ordered.l0 == pytest.approx(measure_rows(dictionary, rows[order], groups=names[order]).l0)


def test_a_source_is_measured_on_its_first_chunks():
    rows, dictionary = rows_with_a_mean(300, 8), random_dictionary(24, 8)
    source = ArraySource(torch.from_numpy(rows), seed=0, rows_a_chunk=100)
    assert measure_rows(dictionary, source).n_rows == 100
    whole, all_rows = measure_rows(dictionary, source, n_rows=300), measure_rows(dictionary, rows)
    assert whole.l0.value == pytest.approx(all_rows.l0.value)
    assert whole.explained_variance.value == pytest.approx(all_rows.explained_variance.value)


def test_rows_of_texts_in_a_source_have_no_interval_for_they_are_not_independent():
    class Draws(Source):
        d_e, rows_a_chunk, about = 8, 50, "draws"

        def chunk(self, number):
            return torch.from_numpy(rows_with_a_mean(50, 8, number))

    dictionary = random_dictionary(24, 8)
    assert not isnan(measure_rows(dictionary, Draws()).l0.low)
    dependent = Draws()
    dependent.origin = {"layer": 1}
    assert isnan(measure_rows(dictionary, dependent).l0.low)
    assert measure_rows(dictionary, dependent).l0.value == measure_rows(dictionary, Draws()).l0.value


@pytest.mark.parametrize("n", [8, 60])
def test_the_interval_of_a_ratio_covers_it(n):
    rng, hits = np.random.default_rng(0), 0
    for _ in range(400):
        sizes = rng.integers(5, 60, size=n).astype(float)
        totals = sizes * rng.beta(2, 5, size=n)
        low, high = ratio_of(totals, sizes)[1:]
        hits += low <= 2 / 7 <= high
    assert 0.92 <= hits / 400 <= 0.985


def test_a_ratio_without_sizes_is_not_a_number_and_one_of_a_single_text_has_no_interval():
    assert isnan(ratio_of(np.ones(3), np.zeros(3)).value)
    one = ratio_of(np.array([2.0]), np.array([4.0]))
    assert one.value == 0.5
    assert isnan(one.low)
    assert one.plain() == [0.5, None, None]
    assert str(one) == "0.5"
    assert str(Quantity(0.5, 0.25, 0.75)) == "0.5 [0.25, 0.75]"


def test_quality_is_ready_for_json_and_is_one_line_of_text():
    quality = measure_rows(random_dictionary(24, 8), rows_with_a_mean(300, 8))
    assert json.loads(json.dumps(quality.as_dict(), allow_nan=False))["n_rows"] == 300
    assert str(quality).startswith("300 rows: explained variance ")


def test_wrong_rows_are_refused_in_a_sentence():
    dictionary, rows = random_dictionary(24, 8), rows_with_a_mean(30, 8)
    with pytest.raises(heedful.HeedfulError, match="reads rows of 8 dimensions; 5 were given"):
        measure_rows(dictionary, rows[:, :5])
    for settings in ({"n_rows": 0}, {"n_rows": -5}, {"batch_size": 0}):
        with pytest.raises(heedful.HeedfulError, match="must be a whole number of at least 1"):
            measure_rows(dictionary, rows, **settings)
    with pytest.raises(heedful.HeedfulError, match="not finite"):
        measure_rows(dictionary, np.where(rows == rows[3, 0], np.nan, rows))
    with pytest.raises(heedful.HeedfulError, match="give one number for each of 30 rows"):
        measure_rows(dictionary, rows, groups=np.arange(29))
