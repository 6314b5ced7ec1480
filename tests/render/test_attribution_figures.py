import numpy as np
import pytest

import heedful
from heedful.errors import BadInput
from heedful.render.attribution_figures import cell_strengths, draw_attribution, part_names, source_names
from heedful.render.palette import blend
from tests.families import build

PROMPT, OUTPUT = "the film was good", [40, 12, 7, 20]


@pytest.fixture(scope="module")
def table():
    return heedful.attribute(build("gpt2"), PROMPT, OUTPUT, "leave-one-out")


def test_the_strength_is_the_root_of_the_share_of_the_largest_score():
    cells = cell_strengths(np.array([[4.0, -1.0], [0.0, 0.01]]))
    assert cells == pytest.approx(np.array([[1.0, -0.5], [0.0, 0.0]]))
    assert np.array_equal(cell_strengths(np.zeros((2, 3))), np.zeros((2, 3)))


def test_the_picture_has_a_tint_for_every_cell_and_a_stroke_on_negative_ones(table):
    (axes,) = draw_attribution(table).axes
    cells = cell_strengths(table.scores)
    tints = [[blend(strength, (255, 255, 255)) for strength in row] for row in cells.tolist()]
    assert np.allclose(axes.images[0].get_array(), np.array(tints) / 255)
    strokes = axes.collections[0].get_offsets()
    assert sorted(map(tuple, np.asarray(strokes)[:, ::-1].astype(int))) == sorted(map(tuple, np.argwhere(cells < 0)))
    assert [label.get_text() for label in axes.get_xticklabels()] == PROMPT.split()
    assert [label.get_text() for label in axes.get_yticklabels()] == part_names(table)


def test_passages_are_numbered_and_long_names_cut():
    passages = ["the film was dull .\nvery dull", "a bad story"]
    table = heedful.attribute(build("gpt2"), PROMPT, OUTPUT, "leave-one-out", context=passages)
    assert source_names(table) == ["1 the film was dull . very dull", "2 a bad story"]
    (axes,) = draw_attribution(table).axes
    assert all(len(label.get_text()) <= 24 for label in axes.get_xticklabels())


def test_earlier_output_is_named_as_such():
    table = heedful.attribute(build("gpt2"), PROMPT, OUTPUT, "leave-one-out", earlier="source")
    assert source_names(table)[:4] == PROMPT.split()
    assert all(name.endswith(" (output)") for name in source_names(table)[4:])


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_picture_is_written(table, tmp_path, ending):
    table.save(tmp_path / f"a.{ending}")
    assert (tmp_path / f"a.{ending}").stat().st_size > 1000


def test_another_ending_is_refused(table, tmp_path):
    with pytest.raises(BadInput, match=r"must end in \.html, \.json, \.png, \.svg or \.pdf"):
        table.save(tmp_path / "a.txt")
