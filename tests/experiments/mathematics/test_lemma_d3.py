from itertools import combinations

import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.mathematics import lemma_d3
from heedful.experiments.mathematics.lemma_d3 import LemmaD3, printed_mean, printed_variance
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return LemmaD3().measure(Workspace(tmp_path_factory.mktemp("lemma-d3")))


def test_the_print_is_the_moments_of_all_sets_only_if_the_empirical_variance_divides_by_n():
    a, b = np.array([1.0, 4.0, 2.5, 7.0, 0.5]), np.array([3.0, 1.0, 1.0, 2.0, 6.0])
    for kept in range(5):
        for s in range(1, 5):
            sets = combinations([unit for unit in range(5) if unit != kept], s)
            H = np.array([sum(b[i] if i in gone else a[i] for i in range(5)) for gone in sets])
            assert printed_mean(a, b, kept, s) == pytest.approx(H.mean())
            assert printed_variance(a, b, kept, s, 5) == pytest.approx(H.var(), abs=1e-12)
            if s < 4:
                assert abs(printed_variance(a, b, kept, s, 4) - H.var()) > 0.1


def test_equal_differences_of_all_units_have_no_variance():
    assert printed_variance(np.full(6, 3.0), np.full(6, 2.0), 2, 3, 6) == pytest.approx(0.0)


def test_the_claims_hold_and_can_fail(numbers):
    verdicts = [claim.verdict for claim in LemmaD3().claims(numbers)]
    assert verdicts == ["agrees", "agrees", "agrees", "agrees"]
    for index, column_name in ((0, "mean printed"), (1, "variance printed"), (2, "moment printed")):
        off = [{**row, column_name: 1.01 * row[column_name]} for row in numbers["counted"]]
        assert LemmaD3().claims({**numbers, "counted": off})[index].verdict == "differs"
    drawn = [{**row, "variance printed": 1.2 * row["variance printed"]} for row in numbers["drawn"]]
    assert LemmaD3().claims({**numbers, "drawn": drawn})[1].verdict == "differs"
    faster = [{**row, "variance": row["variance"] * row["n"] ** 0.3} for row in numbers["growth"]]
    assert LemmaD3().claims({**numbers, "growth": faster})[3].verdict == "differs"


def test_were_the_other_convention_right_it_would_be_called_a_correction(numbers):
    swapped = [
        {**row, "variance printed": row["variance printed, n - 1"], "variance printed, n - 1": row["variance printed"]}
        for row in numbers["counted"]
    ]
    assert LemmaD3().claims({**numbers, "counted": swapped})[1].verdict == "corrected"


def test_a_wrong_factor_is_detected(monkeypatch, tmp_path):
    right = lemma_d3.printed_variance
    monkeypatch.setattr(lemma_d3, "printed_variance", lambda a, *rest: right(a, *rest) * (len(a) - 2) / len(a))
    assert LemmaD3().claims(LemmaD3().measure(Workspace(tmp_path)))[1].verdict == "differs"


def test_points_and_lines_are_the_numbers(numbers):
    mean, variance = LemmaD3().draw(numbers)["moments"].axes
    for axes, name in ((mean, "mean"), (variance, "variance")):
        assert np.allclose(axes.lines[0].get_ydata(), column(numbers["drawn"], name + " printed"))
        points = axes.containers[0]
        assert np.allclose(points[0].get_ydata(), column(numbers["drawn"], name))
        ends = np.array([segment[:, 1] for segment in points[2][0].get_segments()])
        assert np.allclose(ends[:, 0], column(numbers["drawn"], name + " low"))
        assert np.allclose(ends[:, 1], column(numbers["drawn"], name + " high"))
    assert np.allclose(variance.lines[1].get_ydata(), column(numbers["drawn"], "variance printed, n - 1"))
