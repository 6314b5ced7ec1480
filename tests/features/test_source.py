import numpy as np
import pytest
import torch

from heedful.errors import BadInput
from heedful.features.source import ArraySource, check_finite, rows_of


def numbered(n):
    return torch.arange(float(n))[:, None].expand(n, 2).contiguous()


def test_a_pass_gives_every_row_once_and_the_next_pass_in_another_order():
    source = ArraySource(numbered(12), seed=0, rows_a_chunk=4)
    passes = [torch.cat([source.chunk(number) for number in (3 * n, 3 * n + 1, 3 * n + 2)])[:, 0] for n in (0, 1)]
    for order in passes:
        assert sorted(order.tolist()) == list(range(12))
    assert not torch.equal(*passes)


@pytest.mark.parametrize("n", [5, 12, 13])
def test_chunks_are_the_shuffled_passes_one_after_the_other(n):
    source = ArraySource(numbered(n), seed=3, rows_a_chunk=7)
    orders = [np.random.default_rng((3, number)).permutation(n) for number in range(8)]
    expected = np.concatenate(orders)[: 3 * 7]
    given = torch.cat([source.chunk(number) for number in range(3)])
    assert given.shape == (21, 2)
    assert given[:, 0].tolist() == expected.tolist()
    # A chunk depends on its number alone, whatever was asked for before.
    assert torch.equal(source.chunk(0), given[:7])


def test_another_seed_is_another_order_and_other_rows_are_other_data():
    one, other = (ArraySource(numbered(50), seed=seed, rows_a_chunk=50) for seed in (0, 1))
    assert not torch.equal(one.chunk(0), other.chunk(0))
    assert one.about == other.about
    assert one.about != ArraySource(numbered(50) + 1, seed=0, rows_a_chunk=50).about


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_rows_of_any_precision_are_given_in_single_precision(dtype):
    chunk = ArraySource(numbered(6).to(dtype), seed=0, rows_a_chunk=3).chunk(1)
    assert chunk.dtype == torch.float32
    assert set(chunk[:, 0].tolist()) <= set(range(6))


def test_an_array_a_list_and_a_tensor_are_the_same_rows():
    table = [[1, 2], [3, 4], [5, 6]]
    expected = torch.tensor(table).float()
    for given in (table, np.array(table), np.array(table, dtype=np.float32), torch.tensor(table)):
        assert torch.equal(rows_of(given), expected)
    for given in (np.array(table, dtype=">f4"), np.array(table, dtype=np.longdouble), np.array(table[::-1])[::-1]):
        assert torch.equal(rows_of(given).float(), expected)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (np.zeros(3), r"rows × dimensions; one of shape \(3,\) was given"),
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"),
        (np.zeros((0, 4)), r"shape \(0, 4\)"),
        (np.zeros((4, 0)), r"shape \(4, 0\)"),
        (["a text"], "array of numbers; .'a text'. was given"),
        (None, "array of numbers; None was given"),
        (np.array([[1 + 2j]]), "array of numbers"),
        ([[1.0, 2.0], [3.0]], "rows of different lengths were given"),
    ],
)
def test_what_is_no_array_of_rows_is_refused(given, sentence):
    with pytest.raises(BadInput, match=sentence):
        rows_of(given)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_counted_and_refused(bad):
    rows = np.ones((1200, 3))
    rows[[7, 1100], 1] = bad
    with pytest.raises(BadInput, match="^2 of 1,200 rows of activations are not finite numbers, the first is row 7;"):
        rows_of(rows)
    check_finite(torch.ones(2, 3))
