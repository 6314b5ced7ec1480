import numpy as np
import pytest
import torch

from heedful.experiments.claim import column
from heedful.experiments.mathematics import lemma_d2
from heedful.experiments.mathematics.lemma_d2 import LemmaD2
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return LemmaD2().measure(Workspace(tmp_path_factory.mktemp("lemma-d2")))


def test_quadrature_is_a_fine_midpoint_sum_and_the_series_near_zero(numbers):
    x = (np.arange(200_000) + 0.5) / 200_000
    for row in numbers["integral"]:
        if row["a"] > -0.99:
            assert row["integral"] == pytest.approx((x / (1 + row["a"] * x)).mean(), rel=1e-6)
    for row in numbers["near zero"]:
        series = sum((-row["a"]) ** k / (k + 2) for k in range(20))
        assert row["integral"] == pytest.approx(series, rel=1e-13)


def test_the_table_goes_down_to_the_heads_of_the_model(numbers):
    assert min(column(numbers["integral"], "a")) < min(column(numbers["heads"], "a"))


def test_a_of_every_head_is_that_of_the_model_s_own_scores(numbers, paper):
    """From the weights: g of the text and of a text of unknown words, [cls] and padding as they are."""
    document = paper.encode(FIGURE_4)
    net = paper.network
    e = paper.embed([document])[0].double()
    unknown = e.clone()
    unknown[1 : len(document.ids)] = (net.W_e[1] + net.W_p[1 : len(document.ids)]).double()
    W_q, W_k = net.W_q.double(), net.W_k.double()
    q = torch.einsum("hae,e->ha", W_q, e[0]) + net.b_q.double()
    sums = []
    for rows in (unknown, e):
        k = torch.einsum("hae,te->hta", W_k, rows) + net.b_k.double()[:, None]
        sums.append((torch.einsum("ha,hta->ht", q, k) / q.shape[1] ** 0.5).exp().sum(dim=1))
    expected = (sums[0] / sums[1] - 1).detach().numpy()
    assert np.allclose(column(numbers["heads"], "a"), expected, atol=1e-9)


def test_the_claims_hold_and_can_fail(numbers):
    verdicts = [claim.verdict for claim in LemmaD2().claims(numbers)]
    assert verdicts == ["agrees", "agrees", "corrected", "differs"]
    off = [{**row, "closed form": 1.001 * row["closed form"]} for row in numbers["integral"]]
    assert LemmaD2().claims({**numbers, "integral": off})[0].verdict == "differs"
    positive = [{**row, "a": 0.01, "integral": 0.4967, "expansion": 0.4967} for row in numbers["heads"]]
    verdicts = [claim.verdict for claim in LemmaD2().claims({**numbers, "heads": positive})]
    assert verdicts == ["agrees", "agrees", "agrees", "agrees"]


def test_a_wrong_expansion_is_detected(monkeypatch, tmp_path):
    monkeypatch.setattr(lemma_d2, "expansion", lambda a: 0.5 - a / 4)
    assert LemmaD2().claims(LemmaD2().measure(Workspace(tmp_path)))[1].verdict == "differs"


def test_curves_and_points_are_the_numbers(numbers):
    left, right = LemmaD2().draw(numbers)["integral"].axes
    for line, name in zip(left.lines, ("integral", "closed form", "expansion"), strict=False):
        assert np.allclose(line.get_xdata(), 1 + np.array(column(numbers["integral"], "a")))
        assert np.allclose(line.get_ydata(), column(numbers["integral"], name))
    heads = next(line for line in left.lines if line.get_label() == "heads of the model")
    assert np.allclose(heads.get_ydata(), column(numbers["heads"], "integral"))
    low, high = left.get_ylim()
    assert (low < heads.get_ydata()).all()
    assert (heads.get_ydata() < high).all()
    assert len(right.lines[0].get_xdata()) == 13
