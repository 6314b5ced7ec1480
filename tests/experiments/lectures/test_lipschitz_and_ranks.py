import numpy as np
import pytest
from scipy import stats

from heedful.experiments.claim import column
from heedful.experiments.lectures.lipschitz_and_ranks import LipschitzAndRanks
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return LipschitzAndRanks().measure(Workspace(tmp_path_factory.mktemp("sketches")))


def test_quotients_are_bounded_by_the_derivative_or_grow_as_the_root(numbers):
    """|sin 2x|/x ≤ 2; √x/x is largest at the nearest point, which is 0.01 δ: 10/√δ."""
    assert max(column(numbers["quotients"], "largest quotient", function="sin 2x")) <= 2
    steep = column(numbers["quotients"], "largest quotient", function="√|x|")
    assert steep == pytest.approx([10 / np.sqrt(delta) for delta in (1, 0.1, 0.01, 1e-3, 1e-4)])


def test_correlations_are_those_of_scipy(numbers):
    for row in numbers["correlations"]:
        x, y = (column(numbers["pairs"], name, pair=row["pair"]) for name in ("x", "y"))
        assert row["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
        assert row["pearson"] == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)


def test_the_figures_show_the_numbers(numbers):
    drawn = LipschitzAndRanks().draw(numbers)
    assert ["leaves" in axes.get_title() for axes in drawn["lipschitz"].axes] == [False, True]
    assert [len(axes.lines[0].get_xdata()) for axes in drawn["ranks"].axes] == [60, 60, 60]
    assert "Spearman +1.00" in drawn["ranks"].axes[0].get_title()


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in LipschitzAndRanks().claims(numbers)] == ["agrees"] * 3
    flat = [{**row, "largest quotient": 1.0} for row in numbers["quotients"]]
    same = [{**row, "of ranks": 0.5, "pearson": 1.0} for row in numbers["correlations"]]
    claims = LipschitzAndRanks().claims({**numbers, "quotients": flat, "correlations": same})
    assert [claim.verdict for claim in claims] == ["differs"] * 3
