import numpy as np
import pytest

from heedful.perturb.hadamard import hadamard_columns, largest_order, smallest_order

ORDERS = [1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 44, 48, 60, 64, 68, 72, 80, 84, 88, 96, 104, 108, 120, 128, 144, 256]


@pytest.mark.parametrize("order", ORDERS)
def test_rows_and_columns_are_orthogonal_signs(order):
    matrix = hadamard_columns(order, np.arange(order)).astype(np.int64)
    assert (np.abs(matrix) == 1).all()
    assert (matrix @ matrix.T == order * np.eye(order)).all()
    assert largest_order(order) == smallest_order(order) == order


def test_chosen_columns_are_those_of_the_whole_matrix():
    chosen = np.array([17, 0, 95, 48, 47])
    assert (hadamard_columns(96, chosen) == hadamard_columns(96, np.arange(96))[:, chosen]).all()


def test_orders_are_close_to_any_limit():
    assert [largest_order(limit) for limit in (3, 11, 31, 100)] == [2, 8, 24, 96]
    assert all(largest_order(limit) > 0.95 * limit for limit in range(200, 6000, 7))
    assert [smallest_order(least) for least in (3, 13, 17, 33)] == [4, 16, 20, 40]
