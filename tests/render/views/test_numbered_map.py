from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from heedful.errors import BadInput
from heedful.render.views.numbered_map import N_NUMBERED, map_figure, print_numbered

TOKENS = ["[cls]", "a", "$dull$ film"]
MAP = np.array([[0.2, 0.3, 0.5], [0.9, 0.06, 0.04], [0.0, 0.0, 1.0]])


def test_every_cell_of_the_figure_has_its_number():
    (axes,) = map_figure(MAP, TOKENS, TOKENS, "head 0").axes
    assert [text.get_text() for text in axes.texts] == [f"{weight:.2f}" for weight in MAP.ravel()]
    assert np.array_equal(axes.images[0].get_array(), MAP)


def test_the_terminal_has_a_row_for_each_query():
    console = Console(width=80, record=True, file=StringIO())
    print_numbered(MAP, TOKENS, TOKENS, "head 0", console)
    lines = [line.split() for line in console.export_text().splitlines()]
    assert ["a", "0.90", "0.06", "0.04"] in lines


def test_too_many_tokens_are_refused():
    many = ["a"] * (N_NUMBERED + 1)
    with pytest.raises(BadInput, match="up to 40 tokens; this text has 41"):
        map_figure(np.zeros((41, 41)), many, many, "")
