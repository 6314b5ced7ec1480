from math import inf

import pytest

from heedful.errors import BadInput
from heedful.models.budget import Budget, as_size, bytes_of


@pytest.mark.parametrize(
    ("size", "n_bytes"), [("2GB", 2e9), ("500 MB", 5e8), ("1.5g", 1.5e9), (1000, 1000), ("3kib", 3e3)]
)
def test_a_size_is_read_as_people_write_it(size, n_bytes):
    assert bytes_of(size) == n_bytes


@pytest.mark.parametrize("size", ["", "much", "-1GB", "0", 0])
def test_an_invalid_size_is_refused(size):
    with pytest.raises(BadInput, match="memory must be a size"):
        bytes_of(size)


def test_a_budget_checks_its_limits():
    assert Budget.of(None, None, print) == Budget(None, inf, None, False, print)
    assert Budget.of("1MB", 3, print, half=True) == Budget(1_000_000, 3.0, None, True, print)
    with pytest.raises(BadInput, match="above 0"):
        Budget.of(None, 0, print)


def test_a_size_is_written_with_its_unit():
    assert [as_size(n) for n in (2e9, 5e6, 1200, 12)] == ["2 GB", "5 MB", "1.2 kB", "12 bytes"]
