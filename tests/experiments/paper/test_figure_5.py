import numpy as np
import pytest
import torch

from heedful.errors import BadInput
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


def test_the_model_is_left_as_it_was(tmp_path):
    workspace = Workspace(tmp_path)
    before = {name: (weight.dtype, weight.grad) for name, weight in workspace.model.network.named_parameters()}
    Figure5().measure(workspace)
    after = {name: (weight.dtype, weight.grad) for name, weight in workspace.model.network.named_parameters()}
    assert after == before


def test_the_coordinates_are_those_of_the_network_s_gradient(numbers, paper):
    """Figure 5 shows the d_e coordinates of one gradient, with d_e = 80; before, there was one number a word."""
    document = paper.encode(FIGURE_4)
    e = paper.embed([document]).to(paper.network.W_q.dtype).detach().requires_grad_()
    paper.network(e)[0, 1].backward()
    rows = [row for row in numbers["coordinates"] if row["d_e"] == 128]
    assert [row["coordinate"] for row in rows] == list(range(128))
    slope = e.grad[0, 1 : len(document.ids)]
    longest = slope.norm(dim=1).argmax()
    assert {row["word"] for row in rows} == {document.pieces[1 + longest]}
    for side in ("autograd", "theorem"):
        assert column(rows, side) == pytest.approx(slope[longest].tolist(), abs=1e-9)
    small = [row for row in numbers["coordinates"] if row["d_e"] == 80]
    assert [row["coordinate"] for row in small] == list(range(80))
    assert np.abs(column(small, "autograd")).max() > 1e-4
    assert max(column(numbers["coordinates"], "largest difference")) < 1e-12


def test_the_figure_of_coordinates_has_a_bar_and_a_cross_for_each(numbers):
    for axes, d_e in zip(Figure5().draw(numbers)["coordinates"].axes, (80, 128), strict=True):
        assert len(axes.patches) == d_e
        assert axes.lines[0].get_ydata() == pytest.approx(column(numbers["coordinates"], "theorem", d_e=d_e))
        assert f"d_e = {d_e}" in axes.get_title()


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in Figure5().claims(numbers)] == ["agrees", "agrees", "agrees", "corrected"]
    off = [{**row, "theorem": row["theorem"] + 1e-6} for row in numbers["words"]]
    assert Figure5().claims({**numbers, "words": off})[2].verdict == "differs"
    far = [{**row, "largest difference": 1e-6} for row in numbers["coordinates"]]
    assert [claim.verdict for claim in Figure5().claims({**numbers, "coordinates": far})[:2]] == ["differs"] * 2


def test_the_coordinates_of_a_named_word_are_drawn(tmp_path, paper):
    numbers = Figure5().measure(Workspace(tmp_path, text="a fine film , but too long", word="but"))
    e = paper.embed([paper.encode("a fine film , but too long")]).to(paper.network.W_q.dtype).detach().requires_grad_()
    paper.network(e)[0, 1].backward()
    rows = [row for row in numbers["coordinates"] if row["d_e"] == 128]
    assert {row["word"] for row in rows} == {"but"}
    assert column(rows, "autograd") == pytest.approx(e.grad[0, 5].tolist(), abs=1e-9)
    with pytest.raises(BadInput, match="reads no word 'fil'"):
        Figure5().measure(Workspace(tmp_path, text="a fine film", word="fil"))
