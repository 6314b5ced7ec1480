import pytest
import torch

from heedful.models.attention_hook import heard
from heedful.models.language.shared_prefix import shared_length

NETWORK = torch.nn.Linear(2, 2)


def batch(n_equal, n_rows=5, n_tokens=20):
    """Rows that are equal up to a position, and nowhere equal behind it."""
    rows = torch.randn(1, n_tokens, 2, generator=torch.Generator().manual_seed(0)).repeat(n_rows, 1, 1)
    rows[:, n_equal:] += torch.arange(n_rows)[:, None, None]
    return rows


@torch.no_grad()
@pytest.mark.parametrize(
    ("n_equal", "most", "expected"), [(12, 19, 12), (12, 10, 10), (7, 19, 0), (8, 19, 8), (20, 7, 0)]
)
def test_it_is_the_common_beginning_if_that_is_long_enough(n_equal, most, expected):
    assert shared_length(NETWORK, batch(n_equal), None, most) == expected


@torch.no_grad()
def test_a_position_that_one_row_does_not_see_is_not_shared():
    seen = torch.ones(5, 20, dtype=torch.bool)
    seen[3, 9] = False
    assert shared_length(NETWORK, batch(12), seen, 19) == 9


def test_nothing_is_shared_with_gradients_with_few_rows_or_while_attention_is_recorded():
    assert shared_length(NETWORK, batch(12), None, 19) == 0
    with torch.no_grad():
        assert shared_length(NETWORK, batch(12, n_rows=3), None, 19) == 0
        with heard(NETWORK, lambda *_: None):
            assert shared_length(NETWORK, batch(12), None, 19) == 0
