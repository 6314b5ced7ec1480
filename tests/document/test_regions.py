"""Regions of an image: neighbours of similar colour, merged by Ward's rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.document.regions import regions


def picture(colours, size=4):
    """An image whose patches have these colours, rows × columns × 3."""
    return np.repeat(np.repeat(np.array(colours, dtype=np.uint8), size, axis=0), size, axis=1)


def test_four_quarters_of_one_colour_each_are_the_regions():
    colours = np.zeros((4, 4, 3), dtype=np.uint8)
    colours[:2, 2:] = (250, 0, 0)
    colours[2:, :2] = (0, 250, 0)
    colours[2:, 2:] = (0, 0, 250)
    expected = [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]
    assert regions(picture(colours), (4, 4)).tolist() == expected


def is_connected(cells):
    """Whether one can walk between all cells, step by step."""
    reached, edge = set(), [next(iter(cells))]
    while edge:
        row, column = cell = edge.pop()
        if cell in cells and cell not in reached:
            reached.add(cell)
            edge += [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
    return reached == cells


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**31))
def test_regions_are_connected_numbered_in_reading_order_and_as_many_as_promised(rows, columns, seed):
    colours = np.random.default_rng(seed).integers(0, 256, size=(rows, columns, 3))
    region = regions(picture(colours), (rows, columns))
    assert len(set(region.tolist())) == min(max(4, round((rows * columns) ** 0.5)), rows * columns)
    assert list(dict.fromkeys(region.tolist())) == sorted(set(region.tolist()))
    for number in set(region.tolist()):
        assert is_connected({divmod(int(place), columns) for place in np.flatnonzero(region == number)})


def test_the_first_merge_is_the_pair_that_raises_the_variance_least():
    colours = np.random.default_rng(0).integers(0, 256, size=(1, 5, 3))
    rise = [float(np.sum((colours[0, n] / 1.0 - colours[0, n + 1]) ** 2)) / 2 for n in range(4)]
    merged = int(np.argmin(rise))
    region = regions(picture(colours), (1, 5)).tolist()
    assert region[merged] == region[merged + 1]
    assert len(set(region)) == 4


def test_a_picture_that_the_grid_does_not_divide_evenly_has_regions_too():
    assert len(regions(np.zeros((7, 9, 3), dtype=np.uint8), (2, 3))) == 6
    with pytest.raises(ValueError, match="larger than 0|must be"):
        regions(np.zeros((4, 4, 3), dtype=np.uint8), (0, 2))
