import numpy as np
import pytest
import torch

from heedful.experiments.claim import column
from heedful.experiments.paper.figure_5 import Figure5
from heedful.experiments.reviews import FIGURE_4
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return Figure5().measure(Workspace(tmp_path_factory.mktemp("figure-5")))


def test_both_sides_are_the_gradient_of_the_network(numbers, paper):
    document = paper.encode(FIGURE_4)
    e = paper.embed([document]).to(paper.network.W_q.dtype).detach().requires_grad_()
    paper.network(e)[0, 1].backward()
    slope = e.grad[0, 1 : len(document.ids)]
    expected = {
        "mean": slope.mean(dim=1),
        "l1": slope.abs().sum(dim=1),
        "l2": slope.square().sum(dim=1).sqrt(),
        "x-input": (slope * e[0, 1 : len(document.ids)]).sum(dim=1),
    }
    for form, scores in expected.items():
        for side in ("autograd", "theorem"):
            value = torch.tensor(column(numbers["words"], side, form=form), dtype=torch.float64)
            assert torch.allclose(value, scores.detach().double(), atol=1e-9)


def test_bars_and_crosses_are_the_numbers(numbers):
    drawn = Figure5().draw(numbers)["gradients"]
    for axes, form in zip(drawn.axes, ("mean", "l1", "l2", "x-input"), strict=True):
        assert np.allclose([bar.get_height() for bar in axes.patches], column(numbers["words"], "autograd", form=form))
        assert np.allclose(axes.lines[0].get_ydata(), column(numbers["words"], "theorem", form=form))


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in Figure5().claims(numbers)] == ["agrees", "corrected"]
    off = [{**row, "theorem": row["theorem"] + 1e-6} for row in numbers["words"]]
    assert Figure5().claims({**numbers, "words": off})[0].verdict == "differs"
