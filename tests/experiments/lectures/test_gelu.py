import numpy as np
import pytest
from scipy.stats import norm

from heedful.experiments.claim import column
from heedful.experiments.lectures.gelu import Gelu
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return Gelu().measure(Workspace(tmp_path_factory.mktemp("gelu")))


def test_the_curve_is_that_of_the_normal_law(numbers):
    x, normal, gelu = (np.array(column(numbers["curve"], name)) for name in ("x", "normal", "gelu"))
    assert np.allclose(normal, norm.cdf(x), atol=1e-9)
    assert np.allclose(gelu, x * norm.cdf(x), atol=1e-8)


def test_the_lines_are_the_numbers(numbers):
    left, right = Gelu().draw(numbers)["gelu"].axes
    near = [row for row in numbers["curve"] if abs(row["x"]) <= 3.5]
    assert np.allclose(left.lines[0].get_ydata(), column(near, "gelu"))
    assert np.allclose(right.lines[1].get_ydata(), column(near, "printed"))


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in Gelu().claims(numbers)] == ["corrected", "agrees"]
    right = [{**row, "printed": row["normal"], "torch": 0.0} for row in numbers["curve"]]
    assert [claim.verdict for claim in Gelu().claims({"curve": right})] == ["differs", "differs"]
