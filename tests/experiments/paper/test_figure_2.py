import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.paper.figure_2 import Figure2
from heedful.experiments.reviews import FIGURE_1
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return Figure2().measure(Workspace(tmp_path_factory.mktemp("figure-2")))


def test_heads_average_to_what_the_model_says(numbers, paper):
    assert np.isclose(np.mean(column(numbers["heads"], "f_i")), paper([FIGURE_1])[0, 1], atol=1e-9)


def test_weights_are_counted_from_the_model(numbers, paper):
    counted = sum(row["weights"] for row in numbers["parts"])
    # W_ℓ of both classes belongs to the model, the biases are zero and not drawn.
    assert counted == sum(getattr(paper.network, name).numel() for name in ("W_e", "W_q", "W_k", "W_v", "W_l"))


def test_every_part_is_a_box_and_every_path_an_arrow(numbers):
    (axes,) = Figure2().draw(numbers)["architecture"].axes
    boxes = [text for text in axes.texts if text.get_bbox_patch() is not None]
    assert len(boxes) == len(numbers["parts"])
    for row in numbers["parts"]:
        assert any(row["shape"] in box.get_text() and row["what"] in box.get_text() for box in boxes)
    arrows = [text for text in axes.texts if getattr(text, "arrow_patch", None) is not None]
    assert len(arrows) == len(numbers["paths"])
    messages = "".join(text.get_text() for text in axes.texts)
    assert all(f"{value:+.2f}" in messages for value in column(numbers["heads"], "f_i"))


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in Figure2().claims(numbers)] == ["agrees", "agrees"]
    other = {**numbers, "sizes": [{**row, "size": 32} for row in numbers["sizes"]], "output": [{"f": 9.0}]}
    assert [claim.verdict for claim in Figure2().claims(other)] == ["differs", "differs"]
