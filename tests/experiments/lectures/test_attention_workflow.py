import numpy as np
import pytest

from heedful.experiments.claim import column
from heedful.experiments.lectures.attention_workflow import AttentionWorkflow
from heedful.experiments.workspace import Workspace


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return AttentionWorkflow().measure(Workspace(tmp_path_factory.mktemp("workflow")))


def values(numbers, matrix):
    return column(numbers["cells"], "value", matrix=matrix)


def test_the_matrices_are_those_worked_out_by_hand(numbers):
    """x₁ = (1, 0, 1, 0) picks the first and third rows of each weight matrix, x₂ twice the others, x₃ all."""
    assert values(numbers, "k") == [0, 1, 1, 4, 4, 0, 2, 3, 1]
    assert values(numbers, "q") == [1, 0, 2, 2, 2, 2, 2, 1, 3]
    assert values(numbers, "v") == [1, 2, 3, 2, 8, 0, 2, 6, 3]
    assert values(numbers, "q kᵀ") == [2, 4, 4, 4, 16, 12, 4, 12, 10]
    share = 1 / (1 + 2 * np.e**2)
    assert values(numbers, "attention")[:3] == pytest.approx([share, (1 - share) / 2, (1 - share) / 2])
    assert values(numbers, "outputs")[:3] == pytest.approx([2 - share, 7 - 5 * share, 1.5 + 1.5 * share])
    scaled = 1 / (1 + 2 * np.exp(2 / np.sqrt(3)))
    assert values(numbers, "attention, scaled")[0] == pytest.approx(scaled)


def test_every_number_is_on_the_figure(numbers):
    axes = AttentionWorkflow().draw(numbers)["workflow"].axes
    assert sum(len(panel.texts) for panel in axes) == len(numbers["cells"])
    assert [text.get_text() for text in axes[7].texts] == ["2", "4", "4", "4", "16", "12", "4", "12", "10"]


def test_the_claims_hold_and_can_fail(numbers):
    assert [claim.verdict for claim in AttentionWorkflow().claims(numbers)] == ["agrees", "new", "new"]
    off = {**numbers, "gaps": [{**row, "gap": 0.1} for row in numbers["gaps"]]}
    assert AttentionWorkflow().claims(off)[0].verdict == "differs"
