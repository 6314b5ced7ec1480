import numpy as np
import pytest

from heedful.evaluation.report import Column, number
from heedful.metrics.monotonicity import Monotonicity
from heedful.statistics.intervals import TEXTS_FOR_INTERVAL, mean_intervals
from tests.render.reports import planted


def test_intervals_are_those_of_the_values_within_the_bounds_of_the_metric():
    report = planted()
    low, high = report.intervals
    for k, column in enumerate(report.columns):
        expected = mean_intervals(report.values[:, k], column.bounds)
        np.testing.assert_array_equal(np.stack([low[:, k], high[:, k]]), np.stack(expected))


def test_a_report_on_too_few_texts_says_that_it_has_no_intervals():
    report = planted(n_documents=TEXTS_FOR_INTERVAL - 1)
    assert np.isnan(report.intervals[0]).all()
    assert any("no confidence intervals" in note for note in report.notes)
    assert not any("no confidence intervals" in note for note in planted().notes)


def test_a_column_has_the_bounds_of_its_metric_and_json_has_none():
    column = Column.of(Monotonicity())
    assert column.bounds == (-1.0, 1.0)
    assert "bounds" not in column.as_dict()


def test_nan_is_none_in_json():
    assert number(float("nan")) is None
    assert number(0.5) == pytest.approx(0.5)
