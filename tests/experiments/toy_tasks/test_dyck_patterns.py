"""The quick form of the patterns: which models are shown, where the boxes are, and the control."""

import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle

from heedful.experiments.toy_tasks.dyck_patterns import DyckPatterns, shuffled_weights
from heedful.experiments.toy_tasks.dyck_training import quick_dyck_settings
from heedful.experiments.workspace import Workspace

EXPERIMENT = DyckPatterns()
SHOWN = ("most", "least", "random")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("dyck-patterns"))


@pytest.fixture(scope="module")
def numbers(workspace):
    return EXPERIMENT.measure(workspace)


def matrix_of(numbers, place):
    cells = [cell for cell in numbers["cells"] if cell["shown"] == place]
    size = max(cell["row"] for cell in cells) + 1
    result = np.full((size, size), np.nan)
    for cell in cells:
        result[cell["row"], cell["key"]] = cell["attention"]
    return result


def test_the_models_shown_are_right_and_the_extremes_of_their_kind(numbers):
    most, least, random = numbers["shown"]
    assert [row["shown"] for row in numbers["shown"]] == list(SHOWN)
    assert all(row["accuracy"] >= 0.99 for row in numbers["shown"])
    trained = [row["on stack"] for row in numbers["models"] if row["noise"] is None and row["right"]]
    assert (most["on stack"], least["on stack"]) == (max(trained), min(trained))
    assert most["noise"] is least["noise"] is None
    assert random["noise"] == 1.0


def test_a_random_pattern_is_the_table_that_was_drawn_and_no_more_on_the_stack_than_its_shuffles(numbers):
    random = numbers["shown"][2]
    matrix = matrix_of(numbers, "random")
    # The table of the longest strings that the quick form asks about, 80 tokens and the beginning.
    table = torch.randn(81, 81, generator=torch.Generator().manual_seed(random["seed"])).double().numpy()
    for row in range(len(matrix)):
        weights = np.exp(table[row, : row + 1])
        assert matrix[row, : row + 1] == pytest.approx(weights / weights.sum(), rel=1e-4)
    assert random["shuffled low"] <= random["on stack"] <= random["shuffled high"]
    assert numbers["shown"][0]["on stack"] > numbers["shown"][0]["shuffled high"]


def test_rows_of_a_pattern_are_distributions(numbers):
    for place in SHOWN:
        assert np.nansum(matrix_of(numbers, place), axis=1) == pytest.approx(1, rel=1e-5)


def test_the_string_shown_is_valid_held_out_and_needs_a_stack(numbers):
    language, held_out = quick_dyck_settings(0).language, quick_dyck_settings(0).held_out
    text = "".join(cell["read"] for cell in numbers["cells"] if cell["shown"] == "most" and cell["key"] == 0)
    assert text.startswith("begin")
    row = language.read(text.removeprefix("begin"), held_out.shape[1])
    assert language.is_valid(row[None])[0]
    assert (held_out == row).all(axis=1).any()
    assert {"(", "["} <= set(text)


def test_boxes_lie_on_the_last_open_bracket_of_each_row(numbers):
    drawn = EXPERIMENT.draw(numbers)["patterns"]
    text = [cell["read"] for cell in numbers["cells"] if cell["shown"] == "most" and cell["key"] == 0]
    stack: list[int] = []
    wanted = set()
    for row, letter in enumerate(text):
        if letter in "([":
            stack.append(row)
        elif letter in ")]":
            stack.pop()
        if stack:
            wanted.add((stack[-1], row))
    for axes, place in zip(drawn.axes, SHOWN, strict=False):
        boxes = {(patch.get_x() + 0.5, patch.get_y() + 0.5) for patch in axes.patches if isinstance(patch, Rectangle)}
        assert boxes == wanted
        image = axes.images[0].get_array()
        np.testing.assert_allclose(image.filled(np.nan), matrix_of(numbers, place))
        assert [label.get_text() for label in axes.get_yticklabels()] == text


def test_the_control_shows_models_and_shuffles(numbers):
    axes = EXPERIMENT.draw(numbers)["patterns"].axes[3]
    uniform, ours = axes.lines
    assert list(ours.get_xdata()) == [row["on stack"] for row in numbers["shown"]]
    assert list(uniform.get_xdata()) == [row["uniform"] for row in numbers["shown"]]
    spans = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
    assert spans == [[row["shuffled low"], row["shuffled high"]] for row in numbers["shown"]]


def test_shuffles_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    attention = np.tril(rng.random((6, 5, 5)))
    boxes = np.array([[0, 1, 1, 3, 0], [0, 1, 2, 1, 0], [0, 0, 1, 2, 3], [0, 1, 0, 2, 4], [0, 1, 2, 2, 2], [0] * 5])
    result = shuffled_weights(attention, boxes, 4, seed=7)
    again = np.random.default_rng(7)
    for value in result:
        places = [again.permutation(row + 1) for row in range(5)]
        weights = [
            attention[string, row, places[row][boxes[string, row]]]
            for string in range(6)
            for row in range(5)
            if boxes[string, row]
        ]
        assert value == pytest.approx(np.mean(weights))


def test_a_stack_like_pattern_lies_above_its_shuffles_and_a_uniform_one_among_them():
    boxes = np.array([[0, 1, 2, 1, 4, 1]] * 3)
    like = np.zeros((3, 6, 6))
    np.put_along_axis(like, boxes[..., None], 1.0, axis=-1)
    assert shuffled_weights(like, boxes, 50, seed=0).mean() < 0.5
    even = np.tril(np.ones((3, 6, 6))) / np.arange(1, 7)[:, None]
    assert shuffled_weights(even, boxes, 5, seed=0) == pytest.approx(np.mean(1 / np.arange(2, 7)))


def test_uniform_attention_closes_every_bracket(numbers):
    (row,) = numbers["written"]
    assert row["accuracy"] == row["longer accuracy"] == 1
    assert row["on stack"] == pytest.approx(numbers["shown"][0]["uniform"], rel=1e-5)


def test_claims_agree_and_can_fail(numbers):
    verdicts = [claim.verdict for claim in EXPERIMENT.claims(numbers)]
    assert verdicts == ["agrees", "new", "agrees", "new"]

    def with_shown(place, **cells):
        shown = [{**row, **cells} if row["shown"] == place else row for row in numbers["shown"]]
        return EXPERIMENT.claims({**numbers, "shown": shown})

    assert with_shown("random", right=False)[0].verdict == "differs"
    assert with_shown("random", **{"on stack": 0.9})[0].verdict == "differs"
    assert with_shown("least", **{"stack-like": True})[2].verdict == "differs"
    assert with_shown("most", right=False)[2].verdict == "differs"
    assert "not counted" in with_shown("most", **{"stack-like": False})[3].why
    assert "not counted" not in with_shown("most", **{"stack-like": True})[3].why
    lost = [{**numbers["written"][0], "accuracy": 0.99}]
    assert "rounding" in EXPERIMENT.claims({**numbers, "written": lost})[1].why


def test_the_accuracy_with_random_attention_is_given_over_all_seeds(numbers):
    own = [row["accuracy"] for row in numbers["models"] if row["noise"] == 1.0]
    assert len(own) == 2
    assert f"mean of 2 seeds {np.mean(own):.3f} [" in EXPERIMENT.claims(numbers)[0].ours


def test_a_second_run_gives_the_same_numbers(workspace, numbers):
    (workspace.folder / "steps" / "models.json").unlink()
    assert EXPERIMENT.measure(workspace) == numbers
