import numpy as np
import pytest

import heedful
from heedful.experiments.claim import column
from heedful.experiments.mathematics import finite_bandwidth
from heedful.experiments.mathematics.finite_bandwidth import DEFAULT, WIDE, FiniteBandwidth
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return FiniteBandwidth().measure(Workspace(tmp_path_factory.mktemp("finite-bandwidth")))


def test_the_text_at_the_default_bandwidth_is_what_heedful_explains(numbers, paper):
    """In the package's units: distances times 100, width 25; of so many samples the document is nothing."""
    asked = {"target": 1, "unit": "type", "kernel_width": 25.0, "ridge": 0.0, "n_samples": 10**12}
    exact = heedful.explain(paper, FIGURE_4, "lime-exact", **asked)
    assert np.allclose(column(numbers["text"], "theorem", nu=DEFAULT), exact.scores, atol=1e-7)
    assert [row["word"] for row in numbers["wide"]] == list(exact.units)


def test_the_widest_bandwidth_is_lime_s_limit(numbers, paper):
    limit = heedful.explain(paper, FIGURE_4, "lime-limit", target=1, unit="type")
    assert np.allclose(column(numbers["text"], "theorem", nu=WIDE), limit.scores, atol=1e-6)
    assert np.allclose(column(numbers["wide"], "with both"), limit.scores, atol=1e-6)
    d = len(limit.scores)
    centred = limit.scores - limit.scores.mean()
    assert np.allclose(column(numbers["wide"], "Eq. (17)"), (d + 1) / (d - 1) * centred, atol=1e-6)


def test_equation_17_is_off_by_two_in_d_minus_one_even_of_lime_less_its_mean(numbers):
    d = np.array(column(numbers["limits"], "d"))
    assert np.allclose(column(numbers["limits"], "Eq. (17), centred"), 2 / (d - 1), rtol=1e-9)


def test_most_intervals_of_drawn_lime_hold_theorem_1(numbers):
    held = 0
    for row in numbers["drawn"]:
        at = [other for other in numbers["text"] if other["unit"] == row["unit"]]
        nearest = min(at, key=lambda other: abs(other["nu"] - row["nu"]))
        half = row["high"] - row["mean"]
        held += abs(nearest["theorem"] - row["mean"]) < 2.5 * half
    assert held >= len(numbers["drawn"]) - 2


def test_the_claims_hold(numbers):
    verdicts = [claim.verdict for claim in FiniteBandwidth().claims(numbers)]
    assert verdicts == ["agrees", "agrees", "agrees", "corrected", "differs"]


def test_the_claims_can_fail(numbers):
    off = [{**row, "theorem": row["theorem"] + 1e-3} for row in numbers["listed"]]
    assert FiniteBandwidth().claims({**numbers, "listed": off})[0].verdict == "differs"
    stuck = [{**row, "distance": row["distance"] + 1.0} for row in numbers["samples"]]
    assert FiniteBandwidth().claims({**numbers, "samples": stuck})[2].verdict == "differs"
    right = [{**row, "Eq. (17)": 0.0} for row in numbers["limits"]]
    assert FiniteBandwidth().claims({**numbers, "limits": right})[3].verdict == "agrees"
    worse = [{**row, "with both": 0.1} for row in numbers["limits"]]
    assert FiniteBandwidth().claims({**numbers, "limits": worse})[3].verdict == "differs"
    wide = {row["unit"]: row["theorem"] for row in numbers["text"] if row["nu"] == WIDE}
    flat = [{**row, "theorem": wide[row["unit"]]} for row in numbers["text"]]
    assert FiniteBandwidth().claims({**numbers, "text": flat})[4].verdict == "agrees"


def test_a_wrong_third_coefficient_is_detected(monkeypatch, numbers):
    right = finite_bandwidth.theorem_1
    monkeypatch.setattr(finite_bandwidth, "theorem_1", lambda f, kept, nu: right(f, kept, nu) + 0.01 * kept.sum())
    listed = finite_bandwidth._listed([0.25, 1.0], 0)
    assert FiniteBandwidth().claims({**numbers, "listed": listed})[0].verdict == "differs"


def test_sigmas_of_another_distribution_are_detected(monkeypatch, numbers):
    right = finite_bandwidth.sigmas
    monkeypatch.setattr(finite_bandwidth, "sigmas", lambda d, nu: right(d + 1, nu))
    limits = finite_bandwidth._limits(range(3, 6), 0)
    assert FiniteBandwidth().claims({**numbers, "limits": limits})[1].verdict == "differs"


def test_curves_and_points_are_the_numbers(numbers):
    words, samples, limits = FiniteBandwidth().draw(numbers)["bandwidth"].axes
    unit = min(column(numbers["drawn"], "unit"))
    rows = sorted(
        (row for row in numbers["text"] if row["unit"] == unit and row["nu"] != WIDE), key=lambda row: row["nu"]
    )
    assert np.allclose(words.lines[0].get_ydata(), column(rows, "theorem"))
    assert np.allclose(words.containers[0][0].get_ydata(), column(numbers["drawn"], "mean", unit=unit))
    first = np.array(column(numbers["samples"], "distance", n=512))
    drawn = next(line for line in samples.lines if line.get_label() == "drawn LIME")
    assert drawn.get_ydata()[0] == pytest.approx(np.sqrt((first**2).mean()))
    for line, name in zip(
        limits.lines, ("Eq. (17)", "Eq. (17), centred", "with the factor, centred", "with both"), strict=True
    ):
        assert np.allclose(line.get_ydata(), column(numbers["limits"], name))
